"""How slices stood at the last look: read as plain values, since every minute reads them all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from diagnostics.alerting.rule_models import AlertState
from diagnostics.alerting.states import AlertPhase, SliceStatus

Key = tuple[int, UUID]
COLUMNS = (
    "rule_id",
    "key",
    "since",
    "rule_version",
    "pk",
    "state",
    "detector_state",
    "memory",
    "last_data_at",
)


@dataclass(slots=True)
class SavedState:
    """The row of a slice; its `pk` is 0 while it is not saved."""

    rule_id: int
    key: UUID
    since: datetime
    rule_version: int
    pk: int = 0
    state: str = AlertPhase.OK
    detector_state: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    last_data_at: datetime | None = None


def read_kept(project_id: int) -> dict[Key, SavedState]:
    """Return the rows of all slices of the rules of a project that are looked at."""
    rows = AlertState.objects.filter(
        rule__project_id=project_id, rule__is_enabled=True, rule__archived_at=None
    )
    kept = (SavedState(*row) for row in rows.values_list(*COLUMNS))
    return {(row.rule_id, row.key): row for row in kept}


def save_new(found: Iterable[tuple[SavedState, Mapping[str, Any]]]) -> None:
    """Save rows that are not yet, each with the values of its slice."""
    new = [(row, values) for row, values in found if not row.pk]
    made = AlertState.objects.bulk_create(
        AlertState(
            rule_id=row.rule_id,
            key=row.key,
            slice=dict(values),
            since=row.since,
            rule_version=row.rule_version,
        )
        for row, values in new
    )
    for (row, _), saved in zip(new, made, strict=True):
        row.pk = saved.pk


def standing_of(row: SavedState | AlertState) -> SliceStatus:
    """Read how a slice stands."""
    told = row.detector_state
    return SliceStatus(
        AlertPhase(row.state),
        row.since.timestamp(),
        AlertPhase(told.get("was", AlertPhase.FIRING)),
        bool(told.get("is_held")),
    )
