"""The states of failure groups: resolving, muting, reopening, comments, regrouping.

A change is a conditional update, a history entry and an audit entry in one transaction.
Groups of other projects are ignored; each function returns how many groups it changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.figures import plural
from diagnostics.redaction.redactor import redact
from diagnostics.store.fingerprints import Preview, Regrouping, kind_of, preview
from diagnostics.store.models import EventPayload, Version, events_behind
from failsoft.json_values import JSON

Kind = GroupChange.Kind
State = FailureGroup.State
LONGEST_COMMENT = 10_000
MOST_PREVIEWED = 5_000
CHUNK = 500


def resolve(
    project_id: int, ids: Sequence[int], by: User | None, fixed_in: str | None = None
) -> int:
    """Mark groups as resolved; a later failure makes one `regressed`.

    With `fixed_in`, a failure of an older release (any known now but that one) is no
    regression: old instances may keep running for a while.
    """
    versions = Version.objects.filter(project_id=project_id, release__isnull=False)
    releases = set(versions.values_list("release", flat=True)) if fixed_in else set()
    values = {
        "state": State.RESOLVED,
        "resolved_at": clock.now(),
        "fixed_in": fixed_in,
        "releases_before": sorted(name for name in releases if name and name != fixed_in),
    }
    groups = _groups(project_id, ids).exclude(state=State.RESOLVED)
    return _change(project_id, groups, values, Kind.RESOLVED, by, fixed_in or "")


def reopen(project_id: int, ids: Sequence[int], by: User | None) -> int:
    groups = _groups(project_id, ids).filter(
        state__in=[State.RESOLVED, State.REGRESSED, State.MUTED]
    )
    return _change(project_id, groups, _OPEN, Kind.REOPENED, by, "")


def mute(
    project_id: int,
    ids: Sequence[int],
    by: User | None,
    *,
    until: datetime | None = None,
    more: int | None = None,
) -> int:
    """Mute groups: indefinitely, until a time, or until seen `more` times more."""
    values = {
        **_OPEN,
        "state": State.MUTED,
        "muted_until": until,
        "muted_until_seen": None if more is None else F("seen") + more,
    }
    groups = _groups(project_id, ids).exclude(state=State.MUTED)
    text = "" if more is None else f"until seen {plural(more, 'time')} more"
    if until is not None:
        text = f"until {until.isoformat(timespec='minutes')}"
    return _change(project_id, groups, values, Kind.MUTED, by, text)


@transaction.atomic
def comment(project_id: int, ids: Sequence[int], by: User | None, text: str) -> int:
    redacted = redact(text.strip(), LONGEST_COMMENT)
    if not redacted:
        return 0
    group_ids = _groups(project_id, ids).values_list("pk", flat=True)
    return _record(project_id, list(group_ids), Kind.COMMENT, by, redacted)


def preview_regrouping(project_id: int, regrouping: Regrouping, since: datetime) -> Preview:
    """Return what a regrouping would merge or split among the latest 5,000 failures.

    Their kinds are derived again from stored details, so that it also shows the effect of a
    new version of the fingerprint.
    """
    return preview(
        (fingerprint, regrouping.apply(kind))
        for fingerprint, row in _failures(project_id, since)
        if (kind := kind_of(row)) is not None
    )


_OPEN: Mapping[str, Any] = {
    "state": State.ONGOING,
    "resolved_at": None,
    "fixed_in": None,
    "releases_before": [],
    "muted_until": None,
    "muted_until_seen": None,
}


def _groups(project_id: int, ids: Sequence[int]) -> QuerySet[FailureGroup]:
    return FailureGroup.objects.filter(project_id=project_id, pk__in=ids)


@transaction.atomic
def _change(
    project_id: int,
    groups: QuerySet[FailureGroup],
    values: Mapping[str, Any],
    kind: str,
    by: User | None,
    text: str,
) -> int:
    # In the order of the fold, to avoid deadlocks.
    locked = groups.select_for_update().order_by("project_id", "fingerprint")
    ids = list(locked.values_list("pk", flat=True))
    FailureGroup.objects.filter(pk__in=ids).update(**values)
    return _record(project_id, ids, kind, by, text)


def _record(project_id: int, ids: Sequence[int], kind: str, by: User | None, text: str) -> int:
    if not ids:
        return 0
    at = clock.now()
    details: dict[str, JSON] = {"groups": list(ids), "text": text}
    note(project_id, by, f"group.{kind}", plural(len(ids), "failure group"), details)
    lines = [GroupChange(group_id=pk, at=at, kind=kind, by=by, text=text) for pk in ids]
    return len(GroupChange.objects.bulk_create(lines))


def _failures(project_id: int, since: datetime) -> Iterator[tuple[UUID, Mapping[str, Any]]]:
    """Yield fingerprint and row of the latest failures with kept details."""
    payloads = EventPayload.objects.filter(
        project_id=project_id, fingerprint__isnull=False, occurred_at__gte=since
    ).order_by("-occurred_at", "-event_id")
    latest = list(payloads[:MOST_PREVIEWED])
    for start in range(0, len(latest), CHUNK):
        chunk = latest[start : start + CHUNK]
        events = events_behind(chunk)
        for payload in chunk:
            event = events.get(payload.event_id)
            if event is not None and payload.fingerprint is not None:
                yield payload.fingerprint, {**vars(event), "payload": vars(payload)}
