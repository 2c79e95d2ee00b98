"""Validation of single result rows and of the `__meta__` entry."""

from types import UnionType
from typing import Any

from failsoft.plans.contract import TaskStatus
from failsoft.plans.violations import Violations, quote

_ROW_KEYS = ("step_id", "tool", "ok", "skipped", "reason", "error")
# Types and their names in messages; true and false are not 1 or 0.
_Type = tuple[type | UnionType, str]
_TEXT: _Type = (str | None, "a string or null")
_BOOLEAN: _Type = (bool, "true or false")
_ROW_KEYS_SET = frozenset(_ROW_KEYS)


def check_row(path: str, row: object, violations: Violations) -> None:
    """Validate a row that is not the summary."""
    if _is_plain_success(row):
        return
    if not isinstance(row, dict):
        violations.add_type(path, "row_type", "a result object", row)
        return
    before = len(violations)
    _check_keys(path, row, _ROW_KEYS, violations)
    step_id = row.get("step_id")
    if "step_id" in row and not (isinstance(step_id, str) and step_id.strip()):
        violations.add(f"{path}/step_id", "step_id_type", "expected a non-empty string")
    _check_types(path, row, ("tool", "reason", "error"), _TEXT, violations)
    _check_types(path, row, ("ok", "skipped"), _BOOLEAN, violations)
    if len(violations) == before:
        _check_row_semantics(path, row, violations)


def _is_plain_success(row: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether a row is a plain success: the fast path."""
    return (
        type(row) is dict
        and row.keys() >= _ROW_KEYS_SET
        and row["ok"] is True
        and row["skipped"] is False
        and row["reason"] is None
        and row["error"] is None
        and type(row["tool"]) is str
        and type(row["step_id"]) is str
        and bool(row["step_id"].strip())
    )


def _check_row_semantics(path: str, row: dict[str, Any], violations: Violations) -> None:
    if row["skipped"]:
        if row["ok"]:
            violations.add(
                f"{path}/ok", "skipped_but_ok", "expected ok to be false: the step was skipped"
            )
        if not says_something(row["reason"]):
            violations.add(
                f"{path}/reason", "skip_without_reason", "expected why the step was skipped"
            )
    elif row["ok"]:
        if row["error"] is not None:
            violations.add(
                f"{path}/error", "ok_with_error", "expected error to be null: the step is ok"
            )
    elif not (says_something(row["reason"]) or says_something(row["error"])):
        violations.add(
            path, "failure_without_cause", "expected a reason or an error: the step failed"
        )


def _check_keys(
    path: str, row: dict[str, Any], keys: tuple[str, ...], violations: Violations
) -> None:
    for key in keys:
        if key not in row:
            violations.add(path, "key_missing", f"expected the key {quote(key)}")


def _check_types(
    path: str, row: dict[str, Any], keys: tuple[str, ...], expected: _Type, violations: Violations
) -> None:
    for key in keys:
        if key in row and not isinstance(row[key], expected[0]):
            violations.add_type(f"{path}/{key}", f"{key}_type", expected[1], row[key])


def says_something(text: str | None) -> bool:
    """Whether a text is neither null nor blank."""
    return text is not None and bool(text.strip())


_META_KEYS = ("ok", "skipped", "reason", "task_status", "stats", "blocked_steps", "failed_steps")
COUNTS = ("total_steps", "ok", "skipped", "failed")
# Larger than any plan, and small enough for messages.
_LARGEST_COUNT = 10**12


def check_meta(path: str, meta: dict[str, Any], violations: Violations) -> None:
    """Validate the shape of the summary; `results` compares it with the rows."""
    _check_keys(path, meta, _META_KEYS, violations)
    _check_types(path, meta, ("ok", "skipped"), _BOOLEAN, violations)
    _check_types(path, meta, ("reason",), _TEXT, violations)
    if meta.get("skipped") is True:
        violations.add(
            f"{path}/skipped", "meta_skipped", "expected false: a summary is never skipped"
        )
    status = meta.get("task_status")
    statuses = [item.value for item in TaskStatus]
    if "task_status" in meta and not (isinstance(status, str) and status in statuses):
        violations.add(
            f"{path}/task_status", "task_status_unknown", f"expected one of {', '.join(statuses)}"
        )
    if "stats" in meta:
        _check_stats(f"{path}/stats", meta["stats"], violations)
    for key in ("blocked_steps", "failed_steps"):
        _check_ids(path, meta, key, violations)


def _check_stats(path: str, stats: object, violations: Violations) -> None:
    if not isinstance(stats, dict):
        violations.add_type(path, "stats_type", "an object of counts", stats)
        return
    before = len(violations)
    _check_keys(path, stats, COUNTS, violations)
    for key in COUNTS:
        count = stats.get(key)
        if key in stats and not _is_count(count):
            violations.add_type(f"{path}/{key}", "count_type", "a whole number from 0", count)
    if len(violations) == before:
        total = stats["ok"] + stats["skipped"] + stats["failed"]
        if total != stats["total_steps"]:
            violations.add(
                path,
                "stats_sum",
                f"expected the counts to add up to {stats['total_steps']}, got {total}",
            )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT


def _check_ids(path: str, meta: dict[str, Any], key: str, violations: Violations) -> None:
    ids = meta.get(key, [])
    if not isinstance(ids, list):
        violations.add_type(f"{path}/{key}", f"{key}_type", "an array of step ids", ids)
        return
    for index, step_id in enumerate(ids):
        if not isinstance(step_id, str):
            violations.add_type(f"{path}/{key}/{index}", f"{key}_type", "a step id", step_id)
