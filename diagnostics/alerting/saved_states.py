"""Rules and slices as every evaluation reads and writes them: as plain values."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from diagnostics.accounts.models import Project
from diagnostics.alerting.rule_models import AlertRule, AlertState, live_rules
from diagnostics.alerting.rules import STANDARD, RuleDefinition
from diagnostics.alerting.signals import NOTHING, DetectorEvaluation, Slice
from diagnostics.alerting.states import (
    AlertPhase,
    DetectorSignal,
    SliceStatus,
    StateChange,
    time_of,
)
from diagnostics.store.sql import change, statement

Key = tuple[int, UUID]


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


@dataclass(slots=True)
class SliceEvaluation:
    """A slice of a rule at one evaluation (`at`: seconds), before and after."""

    rule: RuleDefinition
    values: Slice
    row: SavedState
    at: float
    result: DetectorEvaluation = NOTHING
    standing: SliceStatus = field(default_factory=SliceStatus)
    happened: StateChange | None = None
    series: Sequence[int] = ()
    detector_state: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    last_data_at: datetime | None = None

    @property
    def onset(self) -> datetime:
        """When it began: as its detector says, else when it fired."""
        return time_of(self.standing.since if self.result.onset is None else self.result.onset)

    @property
    def is_changed(self) -> bool:
        return (
            self.detector_state is not None
            or self.standing != standing_of(self.row)
            or self.last_data_at != self.row.last_data_at
        )

    @property
    def is_recorded(self) -> bool:
        """Whether the evaluation is recorded: not for a slice that goes on without calls."""
        is_idle = (
            self.result.said is DetectorSignal.NO_DATA and self.row.state == AlertPhase.NO_DATA
        )
        return not (is_idle and self.standing.state is AlertPhase.NO_DATA)


def ensure_standard_rules() -> None:
    for standard, rule in STANDARD.items():
        fields = rule.model_dump()
        lacking = Project.objects.exclude(alert_rules__standard=standard)
        AlertRule.objects.bulk_create(
            [AlertRule(project=project, standard=standard, **fields) for project in lacking],
            ignore_conflicts=True,
        )


def rules_of(project_id: int) -> list[RuleDefinition]:
    rows = live_rules(project_id).filter(is_enabled=True).order_by("pk")
    return [RuleDefinition(**row) for row in rows.values(*RuleDefinition.model_fields)]


def read_kept(project_id: int) -> dict[Key, SavedState]:
    """Return the rows of all slices of the rules of a project that are looked at."""
    rows = AlertState.objects.filter(
        rule__project_id=project_id, rule__is_enabled=True, rule__archived_at=None
    )
    names = [column.name for column in fields(SavedState)]
    kept = (SavedState(*row) for row in rows.values_list(*names))
    return {(row.rule_id, row.key): row for row in kept}


def standing_of(row: SavedState | AlertState) -> SliceStatus:
    state = row.detector_state
    return SliceStatus(
        AlertPhase(row.state),
        row.since.timestamp(),
        AlertPhase(state.get("was", AlertPhase.FIRING)),
        bool(state.get("is_held")),
        state.get("ended", 0.0),
    )


def save_new(slices: Iterable[SliceEvaluation]) -> None:
    new = [evaluation for evaluation in slices if not evaluation.row.pk]
    rows = AlertState.objects.bulk_create(
        AlertState(
            rule_id=evaluation.rule.id,
            key=evaluation.row.key,
            slice=dict(evaluation.values),
            since=evaluation.row.since,
            rule_version=evaluation.rule.version,
        )
        for evaluation in new
    )
    for evaluation, saved in zip(new, rows, strict=True):
        evaluation.row.pk = saved.pk


def save_states(slices: Iterable[SliceEvaluation]) -> None:
    """Write how slices stand whose rows are saved already."""
    if rows := [_state_row(evaluation) for evaluation in slices]:
        change(statement("alert_states"), {"rows": json.dumps(rows)})


def save_evaluations(slices: Iterable[SliceEvaluation], *, is_past: bool = False) -> None:
    """Record the evaluations of slices whose rows are saved already."""
    rows = [
        {
            "id": evaluation.row.pk,
            "at": evaluation.at,
            **{name: getattr(evaluation.result, name) for name in ("k", "n", "value", "bound")},
            "rule_version": evaluation.rule.version,
            "verdict": evaluation.result.said,
            "state_after": evaluation.standing.state,
        }
        for evaluation in slices
    ]
    if rows:
        change(statement("alert_evaluations"), {"rows": json.dumps(rows), "is_backfilled": is_past})


def _state_row(evaluation: SliceEvaluation) -> Mapping[str, Any]:
    standing, last = evaluation.standing, evaluation.last_data_at
    detector_state = {**evaluation.row.detector_state, **(evaluation.detector_state or {})}
    for name, value, usual in (
        ("was", standing.was, AlertPhase.FIRING),
        ("is_held", standing.is_held, False),
        ("ended", standing.ended, 0.0),
    ):
        detector_state.pop(name, None)
        if value != usual:
            detector_state[name] = value
    return {
        "id": evaluation.row.pk,
        "state": standing.state,
        "since": standing.since,
        "detector_state": detector_state,
        "memory": evaluation.memory,
        "rule_version": evaluation.rule.version,
        "last_data_at": last.timestamp() if last else None,
    }
