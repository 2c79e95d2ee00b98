"""Who answers the calls to a model, watched: a change is a mark that nobody has to tell.

A batch is looked at once it is stored. What this process saw a few minutes ago costs it no
statement, and a killed process loses nothing: the next event that tells it is looked at.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
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
from diagnostics.ingest.answerer_rules import MOST_VALUES, RETURN, SKEW, SeenStretch, place
from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.ingest.models import Answerer, Deploy
from diagnostics.redaction.event_rows import Row
from diagnostics.store.retention import delete_before
from failsoft.events import PostedEvent

QUIET_SECONDS = 300.0
MOST_QUIET = 10_000
PURGE_BATCH = 5_000
MOST_MARKS = 4
"""A day and model: more of them say that it changes all the time."""
# Of one moment the first that changed is the mark: what follows comes with it.
FIELDS = {
    ObservedKind.MODEL: "served_model",
    ObservedKind.UPSTREAM: "upstream",
    ObservedKind.FINGERPRINT: "system_fingerprint",
}
TOLD = ("environment", "provider", "model", *FIELDS.values())


class Asked(NamedTuple):
    """The model that calls asked for."""

    environment: str | None
    provider: str | None
    model: str


class AnswererSighting(NamedTuple):
    """What answered calls to a model, in one regard."""

    asked: Asked
    kind: ObservedKind
    value: str

    @property
    def any(self) -> "AnswererSighting":
        """Return what stands for all values of the same model in this regard."""
        return self._replace(value="")

    @property
    def slot(self) -> UUID:
        """What the row is found by: the names may be too long for an index."""
        text = to_json([*self.asked, self.kind])
        return UUID(hashlib.md5(text, usedforsecurity=False).hexdigest())


KnownStretches = dict[UUID, dict[str, SeenStretch]]
_quiet: dict[tuple[int, AnswererSighting], float] = {}


def watch_answerers(project_id: int, stored: Iterable[tuple[PostedEvent, Row]]) -> None:
    """Look at who answered events, with their redacted rows, once they are committed."""
    now = monotonic()
    seen = {
        sighting: stretch
        for sighting, stretch in _sightings(stored).items()
        if max(_quiet.get((project_id, one), 0.0) for one in (sighting, sighting.any)) <= now
    }
    if not seen:
        return

    # By name: what Django logs of a fault names the function, and a partial has none.
    def keep() -> None:
        _keep(project_id, seen)

    # A fault of it is no fault of the batch.
    transaction.on_commit(keep, robust=True)


def _sightings(stored: Iterable[tuple[PostedEvent, Row]]) -> dict[AnswererSighting, SeenStretch]:
    told: dict[tuple[str | None, ...], SeenStretch] = {}
    for event, row in stored:
        names = tuple(map(row.get, TOLD))
        if names[2] is None or names[3:] == (None, None, None):
            continue
        at, known = event.occurred_at, told.get(names)
        if known is None:
            told[names] = SeenStretch(at, at)
        elif not known.first <= at <= known.last:
            told[names] = known.joined(SeenStretch(at, at))
    found: dict[AnswererSighting, SeenStretch] = {}
    for (environment, provider, model, *values), stretch in told.items():
        asked = Asked(environment, provider, model or "")
        for kind, value in zip(FIELDS, values, strict=True):
            if value is not None:
                sighting = AnswererSighting(asked, kind, value)
                found[sighting] = found.get(sighting, stretch).joined(stretch)
    return found


def forget_old_answerers() -> int:
    """Forget what was last seen before any event that is kept; returns how many rows."""
    before = clock.now() - timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS)
    return delete_before("diagnostics_answerer", "last_seen", before, PURGE_BATCH)


def _keep(project_id: int, seen: Mapping[AnswererSighting, SeenStretch]) -> None:
    """Extend what is known, mark what has changed, and ask no more of it for minutes."""
    with transaction.atomic():
        # One batch of a project at a time: two that bring the same change mark it once.
        locked = Project.objects.select_for_update(no_key=True).filter(pk=project_id)
        if not locked.values_list("pk", flat=True):
            return
        known = _known(project_id, {sighting.slot for sighting in seen})
        changes = list(_place_all(project_id, seen, known))
        for _, together in groupby(changes, key=lambda one: (one[0].asked, one[1])):
            _mark(project_id, *next(together))
    full = {one.any for one in seen if len(known.get(one.slot, ())) >= MOST_VALUES}
    if len(_quiet) > MOST_QUIET:
        _quiet.clear()
    until = monotonic() + QUIET_SECONDS
    _quiet.update({(project_id, sighting): until for sighting in (*seen, *full)})


def _known(project_id: int, slots: Collection[UUID]) -> KnownStretches:
    known: KnownStretches = {}
    for row in Answerer.objects.filter(project_id=project_id, slot__in=slots):
        known.setdefault(row.slot, {})[row.value] = SeenStretch(row.first_seen, row.last_seen)
    return known


def _place_all(
    project_id: int, seen: Mapping[AnswererSighting, SeenStretch], known: KnownStretches
) -> Iterator[tuple[AnswererSighting, datetime, str]]:
    """Keep what was seen, the earliest first; gives what changed, when and from what."""
    most = clock.now() + SKEW
    plausible = [(one, cut) for one, stretch in seen.items() if (cut := stretch.until(most))]
    for sighting, stretch in sorted(plausible, key=_order):
        mine = known.setdefault(sighting.slot, {})
        placed = place(sighting.value, stretch, mine)
        if placed.stretch is not None:
            mine[sighting.value] = placed.stretch
            _write(project_id, sighting, placed.stretch)
        if placed.previous is not None:
            yield sighting, stretch.first, placed.previous


def _order(item: tuple[AnswererSighting, SeenStretch]) -> tuple[object, ...]:
    (asked, kind, value), stretch = item
    names = [name or "" for name in asked]
    return stretch.first, names, list(FIELDS).index(kind), value


def _write(project_id: int, sighting: AnswererSighting, stretch: SeenStretch) -> None:
    Answerer.objects.update_or_create(
        project_id=project_id,
        slot=sighting.slot,
        value=sighting.value,
        defaults={"first_seen": stretch.first, "last_seen": stretch.last},
        create_defaults={
            **sighting.asked._asdict(),
            "kind": sighting.kind,
            "first_seen": stretch.first,
            "last_seen": stretch.last,
        },
    )


def _mark(project_id: int, sighting: AnswererSighting, at: datetime, previous: str) -> None:
    asked = sighting.asked._asdict()
    lately = Deploy.objects.filter(project_id=project_id, kind__in=ObservedKind, **asked)
    if lately.filter(at__gt=at - RETURN, at__lt=at + RETURN).count() < MOST_MARKS:
        Deploy.objects.create(
            project_id=project_id,
            at=at,
            kind=sighting.kind,
            version=sighting.value,
            previous=previous,
            **asked,
        )
