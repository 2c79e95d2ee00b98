"""One row of results and the `__meta__` entry, each checked by itself."""

from types import UnionType
from typing import Any

from failsoft.plans.contract import TaskStatus
from failsoft.plans.violations import Violations, quote

_ROW_KEYS = ("step_id", "tool", "ok", "skipped", "reason", "error")
# Types, and how they are called; true and false are not 1 or 0.
_Type = tuple[type | UnionType, str]
_TEXT: _Type = (str | None, "a string or null")
_BOOLEAN: _Type = (bool, "true or false")
_ROW_KEYS_SET = frozenset(_ROW_KEYS)


def check_row(path: str, row: object, found: Violations) -> None:
    """Check shape and meaning of a row that is not the summary."""
    if _is_plain_success(row):
        return
    if not isinstance(row, dict):
        found.add_type(path, "row_type", "a result object", row)
        return
    before = len(found)
    _check_keys(path, row, _ROW_KEYS, found)
    step_id = row.get("step_id")
    if "step_id" in row and not (isinstance(step_id, str) and step_id.strip()):
        found.add(f"{path}/step_id", "step_id_type", "expected a non-empty string")
    _check_types(path, row, ("tool", "reason", "error"), _TEXT, found)
    _check_types(path, row, ("ok", "skipped"), _BOOLEAN, found)
    if len(found) == before:
        _check_row_semantics(path, row, found)


def _is_plain_success(row: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether a row is what most rows are: sound at a glance."""
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


def _check_row_semantics(path: str, row: dict[str, Any], found: Violations) -> None:
    if row["skipped"]:
        if row["ok"]:
            found.add(
                f"{path}/ok", "skipped_but_ok", "expected ok to be false: the step was skipped"
            )
        if not says_something(row["reason"]):
            found.add(f"{path}/reason", "skip_without_reason", "expected why the step was skipped")
    elif row["ok"]:
        if row["error"] is not None:
            found.add(f"{path}/error", "ok_with_error", "expected error to be null: the step is ok")
    elif not (says_something(row["reason"]) or says_something(row["error"])):
        found.add(path, "failure_without_cause", "expected a reason or an error: the step failed")


def _check_keys(path: str, row: dict[str, Any], keys: tuple[str, ...], found: Violations) -> None:
    """Check that each of the keys is there."""
    for key in keys:
        if key not in row:
            found.add(path, "key_missing", f"expected the key {quote(key)}")


def _check_types(
    path: str, row: dict[str, Any], keys: tuple[str, ...], wanted: _Type, found: Violations
) -> None:
    """Check that each of the values, if there, is of a type."""
    for key in keys:
        if key in row and not isinstance(row[key], wanted[0]):
            found.add_type(f"{path}/{key}", f"{key}_type", wanted[1], row[key])


def says_something(text: str | None) -> bool:
    """Whether a text is there and not blank."""
    return text is not None and bool(text.strip())


_META_KEYS = ("ok", "skipped", "reason", "task_status", "stats", "blocked_steps", "failed_steps")
COUNTS = ("total_steps", "ok", "skipped", "failed")
# Far beyond any plan, and short enough to be written out.
_LARGEST_COUNT = 10**12


def check_meta(path: str, meta: dict[str, Any], found: Violations) -> None:
    """Check the shape of the summary; whether it is true is asked elsewhere."""
    _check_keys(path, meta, _META_KEYS, found)
    _check_types(path, meta, ("ok", "skipped"), _BOOLEAN, found)
    _check_types(path, meta, ("reason",), _TEXT, found)
    if meta.get("skipped") is True:
        found.add(f"{path}/skipped", "meta_skipped", "expected false: a summary is never skipped")
    status = meta.get("task_status")
    known = [item.value for item in TaskStatus]
    if "task_status" in meta and not (isinstance(status, str) and status in known):
        found.add(
            f"{path}/task_status", "task_status_unknown", f"expected one of {', '.join(known)}"
        )
    if "stats" in meta:
        _check_stats(f"{path}/stats", meta["stats"], found)
    for key in ("blocked_steps", "failed_steps"):
        _check_ids(path, meta, key, found)


def _check_stats(path: str, stats: object, found: Violations) -> None:
    if not isinstance(stats, dict):
        found.add_type(path, "stats_type", "an object of counts", stats)
        return
    before = len(found)
    _check_keys(path, stats, COUNTS, found)
    for key in COUNTS:
        count = stats.get(key)
        if key in stats and not _is_count(count):
            found.add_type(f"{path}/{key}", "count_type", "a whole number from 0", count)
    if len(found) == before:
        total = stats["ok"] + stats["skipped"] + stats["failed"]
        if total != stats["total_steps"]:
            found.add(
                path,
                "stats_sum",
                f"expected the counts to add up to {stats['total_steps']}, got {total}",
            )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT


def _check_ids(path: str, meta: dict[str, Any], key: str, found: Violations) -> None:
    ids = meta.get(key, [])
    if not isinstance(ids, list):
        found.add_type(f"{path}/{key}", f"{key}_type", "an array of step ids", ids)
        return
    for place, step_id in enumerate(ids):
        if not isinstance(step_id, str):
            found.add_type(f"{path}/{key}/{place}", f"{key}_type", "a step id", step_id)
