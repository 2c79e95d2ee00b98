"""The answerers of a model's calls: a change is recorded as a deploy without being reported.

A batch is checked once it is stored. What this process saw a few minutes ago costs it no
statement, and a killed process loses nothing: the next such event is checked.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from pydantic_core import to_json

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.ingest.models import Answerer, Deploy
from diagnostics.redaction.event_rows import Row
from diagnostics.store.sql import delete_before
from diagnostics.store.windows import AHEAD
from failsoft.events import PostedEvent

QUIET_SECONDS = 300.0
MOST_QUIET = 10_000
PURGE_BATCH = 5_000
MOST_MARKS = 4
"""Per day and model; with more, the answerer changes all the time."""
# Of simultaneous changes the first in this order is recorded.
FIELDS = {
    ObservedKind.MODEL: "served_model",
    ObservedKind.UPSTREAM: "upstream",
    ObservedKind.FINGERPRINT: "system_fingerprint",
}
TOLD = ("environment", "provider", "model", *FIELDS.values())
KEPT_EXACT_TO = timedelta(hours=1)
"""A stretch is extended at most this often, so its end is known to an hour."""
RETURN = timedelta(days=1)
"""A value that returns within this time is no change: gateways alternate."""
MOST_VALUES = 50
"""Per model, so that a sender with a new answerer for every call cannot fill the table."""


class SeenStretch(NamedTuple):
    first: datetime
    last: datetime

    def joined(self, other: "SeenStretch") -> "SeenStretch":
        return SeenStretch(min(self.first, other.first), max(self.last, other.last))

    def counted(self, now: datetime) -> "SeenStretch":
        """Return the stretch as it counts: what a wrong clock dates ahead, when it arrives.

        Otherwise all later ones would be late.
        """
        return SeenStretch(*sorted(now if at > now + AHEAD else at for at in self))


class Placed(NamedTuple):
    """The stretch to store for a value, and the previous value if it is a change."""

    stretch: SeenStretch | None
    previous: str | None = None


def place(value: str, observed: SeenStretch, known: Mapping[str, SeenStretch]) -> Placed:
    """Compare an observed value with the known ones of the same model.

    The first value is no change. A late one, after which another was seen, is none either
    and is not stored: it counts as a change when it is seen again.
    """
    known_stretch = known.get(value)
    others = {other: stretch for other, stretch in known.items() if other != value}
    previous = max(others, key=lambda other: others[other].last, default=None)
    is_latest = previous is None or observed.last > others[previous].last
    if known_stretch is None:
        is_kept = is_latest and len(known) < MOST_VALUES
        return Placed(observed, previous) if is_kept else Placed(None)
    is_far = observed.first - known_stretch.last > RETURN
    if previous is not None and is_latest and is_far and others[previous].last > known_stretch.last:
        return Placed(observed, previous)
    is_due = observed.last - known_stretch.last >= KEPT_EXACT_TO
    return Placed(known_stretch.joined(observed) if is_due else None)


class RequestedModel(NamedTuple):
    environment: str | None
    provider: str | None
    model: str


class AnswererSighting(NamedTuple):
    """One observed property of what answered calls to a model."""

    requested: RequestedModel
    kind: ObservedKind
    value: str

    @property
    def any(self) -> "AnswererSighting":
        """Return the key for all values of this property of the model."""
        return self._replace(value="")

    @property
    def slot(self) -> UUID:
        """The key of the row, hashed because names may be too long for an index."""
        text = to_json([*self.requested, self.kind])
        return UUID(hashlib.md5(text, usedforsecurity=False).hexdigest())


KnownStretches = defaultdict[UUID, dict[str, SeenStretch]]
_quiet: dict[tuple[int, AnswererSighting], float] = {}


def watch_answerers(project_id: int, stored: Iterable[tuple[PostedEvent, Row]]) -> None:
    """Check who answered events, given their redacted rows, once they are committed."""
    now = monotonic()
    due = {
        sighting: stretch
        for sighting, stretch in _sightings(stored).items()
        if max(_quiet.get((project_id, key), 0.0) for key in (sighting, sighting.any)) <= now
    }
    if not due:
        return

    # A named function: Django's log of a failure names it, and a partial has no name.
    def keep() -> None:
        _save(project_id, due)

    # A failure here must not fail the batch.
    transaction.on_commit(keep, robust=True)


def _sightings(stored: Iterable[tuple[PostedEvent, Row]]) -> dict[AnswererSighting, SeenStretch]:
    stretches: dict[tuple[str | None, ...], SeenStretch] = {}
    for event, row in stored:
        names = tuple(map(row.get, TOLD))
        if names[2] is None or names[3:] == (None, None, None):
            continue
        at, known = event.occurred_at, stretches.get(names)
        if known is None:
            stretches[names] = SeenStretch(at, at)
        elif not known.first <= at <= known.last:
            stretches[names] = known.joined(SeenStretch(at, at))
    sightings: dict[AnswererSighting, SeenStretch] = {}
    for (environment, provider, model, *values), stretch in stretches.items():
        requested = RequestedModel(environment, provider, model or "")
        for kind, value in zip(FIELDS, values, strict=True):
            if value is not None:
                sighting = AnswererSighting(requested, kind, value)
                sightings[sighting] = sightings.get(sighting, stretch).joined(stretch)
    return sightings


def forget_old_answerers() -> int:
    before = clock.now() - timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS)
    return delete_before("diagnostics_answerer", "last_seen", before, PURGE_BATCH)


def _save(project_id: int, sightings: Mapping[AnswererSighting, SeenStretch]) -> None:
    """Extend known stretches, record changes, then skip these values for some minutes."""
    with transaction.atomic():
        # One batch of a project at a time, so that two batches record the same change once.
        locked = Project.objects.select_for_update(no_key=True).filter(pk=project_id)
        if not locked.values_list("pk", flat=True):
            return
        known: KnownStretches = defaultdict(dict)
        slots = {sighting.slot for sighting in sightings}
        for row in Answerer.objects.filter(project_id=project_id, slot__in=slots):
            known[row.slot][row.value] = SeenStretch(row.first_seen, row.last_seen)
        changes = list(_save_sightings(project_id, sightings, known))
        for _, same in groupby(changes, key=lambda change: (change[0].requested, change[1])):
            _record_change(project_id, *next(same))
    full = {sighting.any for sighting in sightings if len(known[sighting.slot]) >= MOST_VALUES}
    if len(_quiet) > MOST_QUIET:
        _quiet.clear()
    until = monotonic() + QUIET_SECONDS
    _quiet.update({(project_id, sighting): until for sighting in (*sightings, *full)})


def _save_sightings(
    project_id: int, sightings: Mapping[AnswererSighting, SeenStretch], known: KnownStretches
) -> Iterator[tuple[AnswererSighting, datetime, str]]:
    """Store what was seen, the earliest first; yield each change, its time and previous value."""
    now = clock.now()
    counted = [(sighting, stretch.counted(now)) for sighting, stretch in sightings.items()]
    for sighting, stretch in sorted(counted, key=_sort_key):
        stretches = known[sighting.slot]
        placed = place(sighting.value, stretch, stretches)
        if placed.stretch is not None:
            stretches[sighting.value] = placed.stretch
            seen = {"first_seen": placed.stretch.first, "last_seen": placed.stretch.last}
            Answerer.objects.update_or_create(
                project_id=project_id,
                slot=sighting.slot,
                value=sighting.value,
                defaults=seen,
                create_defaults={**sighting.requested._asdict(), "kind": sighting.kind, **seen},
            )
        if placed.previous is not None:
            yield sighting, stretch.first, placed.previous


def _sort_key(item: tuple[AnswererSighting, SeenStretch]) -> tuple[object, ...]:
    (requested, kind, value), stretch = item
    names = [name or "" for name in requested]
    return stretch.first, names, list(FIELDS).index(kind), value


def _record_change(
    project_id: int, sighting: AnswererSighting, at: datetime, previous: str
) -> None:
    requested = sighting.requested._asdict()
    recent = Deploy.objects.filter(project_id=project_id, kind__in=ObservedKind, **requested)
    if recent.filter(at__gt=at - RETURN, at__lt=at + RETURN).count() < MOST_MARKS:
        Deploy.objects.create(
            project_id=project_id,
            at=at,
            kind=sighting.kind,
            version=sighting.value,
            previous=previous,
            **requested,
        )
