"""Writes the story of `agents.core.demo` into a project, and takes it out again.

Events pass the same recording door as all others. Ids end in the demo's mark, providers
have an address nobody can have: removal looks at these and takes nothing else.
"""

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

from agents import demo_rows
from agents.core.demo.cast import DAYS
from agents.core.demo.goals import GoalStory, goals
from agents.core.demo.ladders import Ladder
from agents.core.demo.story import MARK, events_of
from agents.core.demo.traffic import traffic
from agents.models import Attempt, Goal, LanguageModel, Provider
from diagnostics.core.events import Event
from diagnostics.folding import fold
from diagnostics.models import Project
from diagnostics.partitions import ensure_partitions
from diagnostics.purging import purge_marked
from diagnostics.recording import RecordStatus, record
from plans.models import Run, RunStep

SEED = 4411
BATCH = 1000
Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many events and goals were written or removed."""

    events: int
    goals: int


def load(
    project: Project, now: datetime, seed: int = SEED, volume: float = 1.0
) -> Counted:
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
    events = _record_all(project, [*traffic(moment, _chance(seed), volume), *of_goals])
    fold()
    _add_goals(project, told, models)
    return Counted(events, len(told))


def remove(project: Project) -> Counted:
    """Delete what `load` wrote into a project, and nothing else; its counts go too."""
    events = purge_marked(project.pk, MARK.hex())
    with transaction.atomic():
        told = _goals(project)
        removed = told.count()
        told.delete()
        _marked(Run.objects.filter(project=project), "id").delete()
        _remove_models(project)
    return Counted(events, removed)


def _chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a story, not a secret


def _record_all(project: Project, ladders: Iterable[Ladder]) -> int:
    events = (event for ladder in ladders for event in events_of(ladder))
    return sum(_record(project, batch) for batch in _batches(events))


def _record(project: Project, events: list[Event]) -> int:
    with transaction.atomic():
        outcomes = record(project.pk, events, is_demo=True)
    return sum(item.status is RecordStatus.CREATED for item in outcomes)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    pending = iter(items)
    while batch := list(islice(pending, BATCH)):
        yield batch


def _add_models(project: Project, at: datetime) -> dict[tuple[str, str], LanguageModel]:
    """Make sure of the models; their time says when the load was begun."""
    models: dict[tuple[str, str], LanguageModel] = {}
    with transaction.atomic():
        for name, model_names in demo_rows.models_by_provider().items():
            made = demo_rows.provider_of(project, name, at)
            provider = _demo_providers(project).filter(
                name=made.name
            ).first() or _saved(made)
            for model_name in model_names:
                found = provider.language_models.filter(name=model_name).first()
                models[name, model_name] = found or _saved(
                    demo_rows.model_of(provider, model_name)
                )
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
    return Provider.objects.filter(
        project=project, base_url__startswith=demo_rows.ADDRESS
    )


def _marked(rows: QuerySet[Row], id_field: str) -> QuerySet[Row]:
    """Keep the rows whose id ends in the demo's mark."""
    return rows.filter(EndsWith(Cast(id_field, TextField()), MARK.hex()))


def _remove_models(project: Project) -> None:
    """Delete the providers; a model that a goal of one's own was given to stays."""
    used = Goal.objects.filter(project=project).values("language_model")
    models = LanguageModel.objects.filter(provider__in=_demo_providers(project))
    models.exclude(pk__in=used).delete()
    _demo_providers(project).filter(language_models__isnull=True).delete()
