"""Writes the demonstration data into a project, and removes it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import EndsWith

from agents.demo import rows as demo_rows
from agents.demo.attempts import Ladder
from agents.demo.deploys import NOTE, incident_deploys, story_deploys
from agents.demo.drawn_runs import DrawnIncident, ladders_of
from agents.demo.events import MARK, events_of
from agents.demo.fleet import DAYS
from agents.demo.goals import GoalStory, goals
from agents.demo.traffic import traffic
from agents.goals.models import Attempt, Goal
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.models import Project
from diagnostics.alerting.backfill import forget
from diagnostics.alerting.evaluator import backfill
from diagnostics.ingest.deploy_items import PostedDeploy
from diagnostics.ingest.deploys import record_deploy
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import RecordStatus, record
from diagnostics.purge import purge_marked
from diagnostics.reports.archive import archive_last_days
from diagnostics.reports.models import Report
from diagnostics.store.aggregation import fold
from diagnostics.store.models import EventIdentity
from diagnostics.store.partitions import ensure_partitions
from failsoft.events import PostedEvent
from plans.models.run import Run, RunStep

BATCH = 1000
Item = TypeVar("Item")


def record_ladders(project: Project, ladders: Iterable[Ladder]) -> int:
    """Record every event of some runs; gives how many were new."""
    events = (event for ladder in ladders for event in events_of(ladder))
    return sum(_record(project, batch) for batch in _batches(events))


def record_deploys(project: Project, deploys: Iterable[PostedDeploy]) -> None:
    """Record deploys; those that are there already stay as they are."""
    with transaction.atomic():
        for deploy in deploys:
            record_deploy(project.pk, deploy)


def remove_events(project: Project) -> int:
    """Delete the demo's events with their counts, and its deploys; gives the events."""
    deploys_of_demo(project).delete()
    return purge_marked(project.pk, MARK.hex())


def deploys_of_demo(project: Project) -> QuerySet[Deploy]:
    """Return the deploys that the demo told."""
    return Deploy.objects.filter(project=project, note__startswith=NOTE)


def has_demo_events(project: Project) -> bool:
    """Whether there are events of the demo."""
    ids = Cast("event_id", TextField())
    events = EventIdentity.objects.filter(project=project)
    return events.filter(EndsWith(ids, MARK.hex())).exists()


def _record(project: Project, events: list[PostedEvent]) -> int:
    with transaction.atomic():
        outcomes = record(project.pk, events, is_demo=True)
    return sum(item.status is RecordStatus.CREATED for item in outcomes)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    pending = iter(items)
    while batch := list(islice(pending, BATCH)):
        yield batch


SEED = 4411
WATCHED = timedelta(hours=12)
"""How far back alert rules are asked: the incident is six hours old."""
WHOLE = 1_000
"""Batches that are folded at most: all of what was loaded."""
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class DemoCounts:
    """How many events and goals were written or removed."""

    events: int
    goals: int


def load(project: Project, now: datetime, seed: int = SEED, volume: float = 1.0) -> DemoCounts:
    """Write the fortnight before `now` into a project; volume 1 is about 25,000 events.

    A project that has the demo keeps it as it is. A load that was interrupted is taken
    up again from the moment it was begun at, and adds what is missing.
    """
    if _goals(project).exists():
        return DemoCounts(0, 0)
    begun = _demo_providers(project).values_list("created_at", flat=True).first()
    moment = begun or now
    models = _add_models(project, moment)
    told = list(goals(moment, _chance(seed), project.pk))
    of_goals = [cycle.ladder for goal in told for cycle in goal.cycles]
    ensure_partitions((moment - timedelta(days=DAYS)).date(), moment.date())
    record_deploys(project, story_deploys(moment))
    events = record_ladders(project, [*traffic(moment, _chance(seed), volume), *of_goals])
    fold()
    _add_goals(project, told, models)
    _look_back(project, moment)
    archive_last_days(project, moment)
    return DemoCounts(events, len(told))


def load_incident(project: Project, incident: DrawnIncident) -> int:
    """Write the week and the incident at its end into a project; gives the events.

    Its truth is `incident.truth`. A project that has demo events keeps them: 0.
    """
    if has_demo_events(project):
        return 0
    events = write_incident(project, incident)
    _look_back(project, incident.now)
    return events


def write_incident(project: Project, incident: DrawnIncident) -> int:
    """Write an incident's events and deploys, without what alerts would have made of it."""
    first = incident.now - timedelta(days=DAYS)
    ensure_partitions(first.date(), incident.now.date())
    record_deploys(project, incident_deploys(incident))
    events = record_ladders(project, ladders_of(incident, _chance(incident.seed)))
    fold(most_batches=WHOLE)
    return events


def remove(project: Project) -> DemoCounts:
    """Delete what `load` wrote into a project, and nothing else; its counts go too."""
    begun = _demo_providers(project).values_list("created_at", flat=True).first()
    forget(project.pk)
    events = remove_events(project)
    with transaction.atomic():
        told = _goals(project)
        removed = told.count()
        _reports(project, begun).delete()
        told.delete()
        _marked(Run.objects.filter(project=project), "id").delete()
        _remove_models(project)
    return DemoCounts(events, removed)


def is_loaded(project: Project) -> bool:
    """Whether a project has the demo, or the beginning of it."""
    return _demo_providers(project).exists()


def _look_back(project: Project, moment: datetime) -> None:
    """Write what the alert rules would have found lately: evaluations and incidents."""
    backfill(project.pk, moment - WATCHED, moment)


def _reports(project: Project, begun: datetime | None) -> QuerySet[Report]:
    """Return the report that the load archived, unless it was sent to somebody as well."""
    reports = Report.objects.filter(project=project, deliveries__isnull=True)
    if begun is None:
        return reports.none()
    return reports.filter(period_start__lt=begun, period_end__gt=begun, query="")


def _chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a story, not a secret


def _add_models(project: Project, at: datetime) -> dict[tuple[str, str], LanguageModel]:
    """Make sure of the models; their time says when the load was begun."""
    models: dict[tuple[str, str], LanguageModel] = {}
    with transaction.atomic():
        for name, model_names in demo_rows.models_by_provider().items():
            made = demo_rows.provider_of(project, name, at)
            provider = _demo_providers(project).filter(name=made.name).first() or _saved(made)
            for model_name in model_names:
                found = provider.language_models.filter(name=model_name).first()
                models[name, model_name] = found or _saved(demo_rows.model_of(provider, model_name))
    return models


def _saved(row: Row) -> Row:
    row.save(force_insert=True)
    return row


def _add_goals(
    project: Project,
    told: list[GoalStory],
    models: dict[tuple[str, str], LanguageModel],
) -> None:
    """Write all goals at once: where there is one, the load is complete."""
    with transaction.atomic():
        for goal in told:
            Run.objects.bulk_create(demo_rows.runs_of(project, goal))
            RunStep.objects.bulk_create(demo_rows.steps_of(project, goal))
            model = models[goal.line.provider, goal.line.model]
            demo_rows.goal_of(project, goal, model).save(force_insert=True)
            Attempt.objects.bulk_create(demo_rows.attempts_of(project, goal))


def _goals(project: Project) -> QuerySet[Goal]:
    return _marked(Goal.objects.filter(project=project), "id")


def _demo_providers(project: Project) -> QuerySet[Provider]:
    return Provider.objects.filter(project=project, base_url__startswith=demo_rows.ADDRESS)


def _marked(rows: QuerySet[Row], id_field: str) -> QuerySet[Row]:
    """Keep the rows whose id ends in the demo's mark."""
    return rows.filter(EndsWith(Cast(id_field, TextField()), MARK.hex()))


def _remove_models(project: Project) -> None:
    """Delete the providers; a model that a goal of one's own was given to stays."""
    used = Goal.objects.filter(project=project).values("language_model")
    models = LanguageModel.objects.filter(provider__in=_demo_providers(project))
    models.exclude(pk__in=used).delete()
    _demo_providers(project).filter(language_models__isnull=True).delete()
