"""Writes the story of `agents.core.demo` into a project, and takes it out again.

Events pass the same recording door as all others. Ids end in the demo's mark, providers
have an address nobody can have: removal looks at these and takes nothing else.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import EndsWith

from agents import demo_rows
from agents.core.demo.cast import DAYS
from agents.core.demo.deploys import incident_deploys, story_deploys
from agents.core.demo.goals import GoalStory, goals
from agents.core.demo.story import MARK
from agents.core.demo.traffic import traffic
from agents.core.demo.troubles.drawing import Incident
from agents.core.demo.troubles.ladders import ladders_of
from agents.demo_events import (
    has_demo_events,
    record_deploys,
    record_ladders,
    remove_events,
)
from agents.models import Attempt, Goal, LanguageModel, Provider
from diagnostics.alerts.alerting import backfill
from diagnostics.alerts.backfilling import forget
from diagnostics.models import Project, Report
from diagnostics.reports.archive import archive_last_days
from diagnostics.storage.folding import fold
from diagnostics.storage.partitions import ensure_partitions
from plans.models import Run, RunStep

SEED = 4411
WATCHED = timedelta(hours=12)
"""How far back alert rules are asked: the incident is six hours old."""
WHOLE = 1_000
"""Batches that are folded at most: all of what was loaded."""
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many events and goals were written or removed."""

    events: int
    goals: int


def load(project: Project, now: datetime, seed: int = SEED, volume: float = 1.0) -> Counted:
    """Write the fortnight before `now` into a project; volume 1 is about 25,000 events.

    A project that has the demo keeps it as it is. A load that was interrupted is taken
    up again from the moment it was begun at, and adds what is missing.
    """
    if _goals(project).exists():
        return Counted(0, 0)
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
    return Counted(events, len(told))


def load_incident(project: Project, incident: Incident) -> int:
    """Write the week and the incident at its end into a project; gives the events.

    Its truth is `incident.truth`. A project that has demo events keeps them: 0.
    """
    if has_demo_events(project):
        return 0
    events = write_incident(project, incident)
    _look_back(project, incident.now)
    return events


def write_incident(project: Project, incident: Incident) -> int:
    """Write an incident's events and deploys, without what alerts would have made of it."""
    first = incident.now - timedelta(days=DAYS)
    ensure_partitions(first.date(), incident.now.date())
    record_deploys(project, incident_deploys(incident))
    events = record_ladders(project, ladders_of(incident, _chance(incident.seed)))
    fold(most_batches=WHOLE)
    return events


def remove(project: Project) -> Counted:
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
    return Counted(events, removed)


def is_loaded(project: Project) -> bool:
    """Ask whether a project has the demo, or the beginning of it."""
    return _demo_providers(project).exists()


def _look_back(project: Project, moment: datetime) -> None:
    """Write what the alert rules would have found lately: evaluations and incidents."""
    backfill(project.pk, moment - WATCHED, moment)


def _reports(project: Project, begun: datetime | None) -> QuerySet[Report]:
    """Give the report that the load archived, unless it was sent to somebody as well."""
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
