"""Events and deploys of the demo: through the same doors as all others, and out again."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import EndsWith

from agents.core.demo.deploys import NOTE
from agents.core.demo.ladders import Ladder
from agents.core.demo.story import MARK, events_of
from diagnostics.core.deploys import Deploy as PostedDeploy
from diagnostics.core.events import Event
from diagnostics.ingestion.deploys import record_deploy
from diagnostics.ingestion.recording import RecordStatus, record
from diagnostics.models import Deploy, EventIdentity, Project
from diagnostics.storage.purging import purge_marked

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
    """Give the deploys that the demo told."""
    return Deploy.objects.filter(project=project, note__startswith=NOTE)


def has_demo_events(project: Project) -> bool:
    """Ask whether there are events of the demo."""
    ids = Cast("event_id", TextField())
    events = EventIdentity.objects.filter(project=project)
    return events.filter(EndsWith(ids, MARK.hex())).exists()


def _record(project: Project, events: list[Event]) -> int:
    with transaction.atomic():
        outcomes = record(project.pk, events, is_demo=True)
    return sum(item.status is RecordStatus.CREATED for item in outcomes)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    pending = iter(items)
    while batch := list(islice(pending, BATCH)):
        yield batch
