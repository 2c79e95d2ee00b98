"""Write demo data into a project: calls, goals, breakers, fix patterns; and remove it.

At once, or by a worker, with a row and an audit entry.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from random import Random
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import EndsWith

from agents.breakers.models import Breaker, BreakerTransition
from agents.demo.calls import OUTPUT_LIMIT_TOKENS, TEMPERATURE, DemoAttempts
from agents.demo.events import MARK, NOTE, events_of, story_deploys
from agents.demo.goals import TIMEOUT_SECONDS, goals
from agents.demo.story import HOUR, STORY
from agents.demo.traffic import traffic
from agents.fix_patterns.models import FixPattern
from agents.fix_patterns.status import DEMO
from agents.goals.models import Attempt, Goal
from agents.jobs import DemoOrder, finish_job, submit_job
from agents.llm.models import LanguageModel, Provider
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.backfill import backfill, forget
from diagnostics.alerting.incident_models import Incident, IncidentNote
from diagnostics.clock import DatabaseNow
from diagnostics.ingest.deploy_items import PostedDeploy
from diagnostics.ingest.deploys import record_deploy
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import RecordStatus, record
from diagnostics.prices.models import Price, prices_of
from diagnostics.prices.prices import look_up_prices
from diagnostics.purge import purge_marked
from diagnostics.reports.archive import archive_last_days
from diagnostics.reports.models import Report
from diagnostics.store.aggregation import UNTIL_DONE, fold
from diagnostics.store.partitions import ensure_partitions
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.breaker import BreakerState
from plans.models.run import Run, RunStep

BATCH = 1000
SEED = 4411
WATCHED_STORY = timedelta(hours=60)
"""How far back they are evaluated for the story: to before its two small incidents."""
ADDRESS = "https://demo.invalid/"
"""No such host can exist; every provider with this address is of the demo."""
DEMO_PRICES = "demo price"
"""The source of a demo price."""
NOTICED = timedelta(minutes=9)
COOL_DOWN = timedelta(seconds=80)
ADAPTERS = {"anthropic": Provider.Adapter.ANTHROPIC}
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class DemoCounts:
    events: int
    goals: int


def load(project: Project, now: datetime, seed: int = SEED, volume: float = 1.0) -> DemoCounts:
    """Write the two weeks before `now` into a project; volume 1 is about 25,000 events.

    A project that has the demo keeps it unchanged. An interrupted load is
    resumed with the time of its start, and adds what is missing.
    """
    if _goals(project).exists():
        return DemoCounts(0, 0)
    started_at = _providers(project).values_list("created_at", flat=True).first()
    moment = started_at or now
    models = _add_models(project, moment)
    stories = list(goals(moment, _chance(seed), project.pk))
    of_goals = [ladder for story in stories for ladder in story.ladders]
    runs = chain(traffic(moment, _chance(seed), volume), of_goals)
    events = write_runs(project, moment, story_deploys(moment), runs)
    # In one transaction: if there is a goal, the load is complete.
    with transaction.atomic():
        for story in stories:
            Run.objects.bulk_create(story.runs)
            RunStep.objects.bulk_create(story.steps)
            story.goal.language_model = models[story.series.provider, story.series.model]
            story.goal.save(force_insert=True)
            Attempt.objects.bulk_create(story.attempts)
    _add_demo_prices(project.pk, moment)
    watched = moment - WATCHED_STORY
    backfill(project.pk, watched, moment)
    # Rules without a past take a busy first day for an incident; the story tells of none.
    Incident.objects.filter(project=project, is_backfilled=True, onset__lt=watched).delete()
    remove_aftermath(project.pk)
    add_aftermath(project.pk, moment)
    archive_last_days(project, moment)
    return DemoCounts(events, len(stories))


def write_runs(
    project: Project, now: datetime, deploys: Iterable[PostedDeploy], runs: Iterable[DemoAttempts]
) -> int:
    """Record deploys and runs as their senders would, and aggregate; return the new events."""
    ensure_partitions((now - timedelta(days=STORY.days)).date(), now.date())
    with transaction.atomic():
        for deploy in deploys:
            record_deploy(project.pk, deploy)
    events = (event for ladder in runs for event in events_of(ladder))
    created = 0
    while batch := list(islice(events, BATCH)):
        with transaction.atomic():
            outcomes = record(project.pk, batch, is_demo=True)
        created += sum(item.status is RecordStatus.CREATED for item in outcomes)
    fold(UNTIL_DONE)
    return created


def remove(project: Project) -> DemoCounts:
    """Delete what `load` wrote into a project, counts included, and nothing else."""
    started_at = _providers(project).values_list("created_at", flat=True).first()
    remove_aftermath(project.pk)
    Deploy.objects.filter(project=project, note__startswith=NOTE).delete()
    Price.objects.filter(project=project, edition=DEMO_PRICES).delete()
    events = purge_marked(project.pk, MARK.hex())
    forget(project.pk)
    with transaction.atomic():
        removed = _goals(project).count()
        if started_at is not None:
            # The report that the load archived, unless it was also sent.
            reports = Report.objects.filter(project=project, deliveries__isnull=True, query="")
            reports.filter(period_start__lt=started_at, period_end__gt=started_at).delete()
        _goals(project).delete()
        _marked(Run.objects.filter(project=project)).delete()
        # Delete the providers; a model that a real goal used stays.
        used_models = Goal.objects.filter(project=project).values("language_model")
        models = LanguageModel.objects.filter(provider__in=_providers(project))
        models.exclude(pk__in=used_models).delete()
        _providers(project).filter(language_models__isnull=True).delete()
    return DemoCounts(events, removed)


def is_loaded(project: Project) -> bool:
    return _providers(project).exists()


def _chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a story, not a secret


def _add_models(project: Project, at: datetime) -> dict[tuple[str, str], LanguageModel]:
    """Get or create the models; their creation time is the start of the load.

    All are disabled, so that no goal is ever sent to them. Names of providers leave
    the plain names to real ones.
    """
    models: dict[tuple[str, str], LanguageModel] = {}
    with transaction.atomic():
        names = [
            (series.provider, series.model) for series in STORY.series if not series.is_outside
        ]
        for name, model in dict.fromkeys(names):
            provider, _ = _providers(project).get_or_create(
                name=demo_provider(name),
                defaults={
                    "project": project,
                    "adapter": ADAPTERS.get(name, Provider.Adapter.OPENAI),
                    "base_url": f"{ADDRESS}{name}",
                    "enabled": False,
                    "created_at": at,
                },
            )
            modes = ["text", "schema"] if name == "openai" else ["text"]
            models[name, model], _ = provider.language_models.get_or_create(
                name=model,
                defaults={
                    "project": project,
                    "enabled": False,
                    "last_output_mode": modes[-1],
                    "supported_output_modes": modes,
                    "max_output_tokens": OUTPUT_LIMIT_TOKENS[PlannerSchema.PLAN],
                    "temperature": TEMPERATURE,
                    "attempt_timeout_seconds": TIMEOUT_SECONDS,
                    "created_at": provider.created_at,
                },
            )
    return models


def _add_demo_prices(project_id: int, moment: datetime) -> None:
    look_up_prices()
    priced = prices_of(project_id)
    first_day = (moment - timedelta(days=STORY.days)).date()
    Price.objects.bulk_create(
        (
            Price(project_id=project_id, edition=DEMO_PRICES, valid_from=first_day, **price)
            for price in STORY.prices
            if (price["provider"], price["model"]) not in priced
        ),
        ignore_conflicts=True,
    )


def _goals(project: Project) -> QuerySet[Goal]:
    return _marked(Goal.objects.filter(project=project))


def _providers(project: Project) -> QuerySet[Provider]:
    return Provider.objects.filter(project=project, base_url__startswith=ADDRESS)


def _marked(rows: QuerySet[Row]) -> QuerySet[Row]:
    return rows.filter(EndsWith(Cast("id", TextField()), MARK.hex()))


def demo_provider(name: str) -> str:
    """Return the name of a demo provider, which never clashes with a real one."""
    return f"{name} (demo)"


def add_aftermath(project_id: int, moment: datetime) -> None:
    """Add breakers, fix patterns and resolved incidents; none affects a real call."""
    for breaker in STORY.breakers:
        _add_breaker(project_id, breaker, moment)
    FixPattern.objects.bulk_create(
        (
            FixPattern(
                project_id=project_id,
                schema=PlannerSchema.PLAN,
                last_success_at=moment - HOUR,
                decision=FixPattern.Decision.APPROVED,
                decided_by=DEMO,
                decided_at=moment - STORY.days * 24 * HOUR,
                **pattern,
            )
            for pattern in STORY.fix_patterns
        ),
        ignore_conflicts=True,
    )
    for incident in STORY.incidents:
        if incident.resolved_as:
            resolved = Incident.objects.filter(
                project_id=project_id,
                is_backfilled=True,
                state=Incident.State.RESOLVED,
                slices__slice__model=incident.model,
            )
            for row in resolved.distinct():
                row.acknowledged_at = row.fired_at + NOTICED
                row.resolution_cause = incident.resolved_as
                row.save(update_fields=["acknowledged_at", "resolution_cause"])
                at = row.cleared_at or row.acknowledged_at
                IncidentNote.objects.create(incident=row, at=at, text=incident.note)


def _add_breaker(project_id: int, breaker: dict[str, Any], moment: datetime) -> None:
    moves = [(moment - hours * HOUR, state, cause) for hours, state, cause in breaker["moves"]]
    states = [BreakerState.CLOSED, *(state for _, state, _ in moves)]
    changed_at, state, cause = moves[-1]
    row = Breaker.objects.create(
        project_id=project_id,
        provider=demo_provider(breaker["provider"]),
        model=breaker["model"],
        operation=breaker["operation"],
        kind=breaker["kind"],
        state=state,
        cause=cause,
        epoch=len(moves),
        trips=states.count(BreakerState.OPEN),
        open_until=changed_at + COOL_DOWN if state == BreakerState.OPEN else None,
        changed_at=changed_at,
    )
    BreakerTransition.objects.bulk_create(
        BreakerTransition(
            breaker=row, from_state=before, to_state=after, at=at, cause=cause, epoch=epoch
        )
        for epoch, (before, (at, after, cause)) in enumerate(
            zip(states, moves, strict=False), start=1
        )
    )


def remove_aftermath(project_id: int) -> None:
    """Delete breakers and fix patterns of the demo; incidents are removed elsewhere."""
    names = {demo_provider(series.provider) for series in STORY.series}
    Breaker.objects.filter(project_id=project_id, provider__in=names).delete()
    FixPattern.objects.filter(project_id=project_id, decided_by=DEMO).delete()


TASK = "agents.tasks.see_to_demo"
# The order of a worker that died stays `running`: after this time it counts as failed.
LOST = timedelta(minutes=15)
Status = DemoOrder.Status


def order_demo(project: Project, by: User, verb: str) -> DemoOrder:
    """Enqueue loading or removing the demo data; return the running order if there is one."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        at_work = DemoOrder.objects.filter(project=project, status=Status.RUNNING)
        lost = at_work.filter(at__lt=clock.now() - LOST)
        lost.update(status=Status.FAILED, finished_at=DatabaseNow())
        if running := at_work.first():
            return running
        job = DemoOrder(project=project, verb=DemoOrder.Verb(verb))
        submit_job(job, by, TASK, f"demo.{verb}_ordered", project.slug)
    return job


def last_order(project: Project) -> DemoOrder | None:
    """Return the newest order, failed if its worker died: the next order stores that."""
    orders = DemoOrder.objects.filter(project=project).select_related("by")
    order = orders.order_by("-at", "-pk").first()
    if order and order.status == Status.RUNNING and order.at < clock.now() - LOST:
        order.status = Status.FAILED
    return order


def carry_out(order_id: int) -> None:
    """Load or remove as ordered; safe to repeat after an interruption."""
    orders = DemoOrder.objects.select_related("project")
    job = orders.filter(pk=order_id, status=Status.RUNNING).first()
    if job is None:
        return
    status, counts = Status.FAILED, DemoCounts(0, 0)
    try:
        is_load = job.verb == DemoOrder.Verb.LOAD
        counts = load(job.project, clock.now()) if is_load else remove(job.project)
        status = Status.DONE
    finally:
        action = f"demo.{job.verb}_{status}"
        finish_job(job, status, action, job.project.slug, **asdict(counts))
