"""The results validator.

It is strict about what the contract defines - booleans, one `__meta__` at the end, counts and
status that match the rows - and ignores extra keys. It accepts the bare list or the document
`{"results": [...]}`, and never raises for any JSON value.
"""

from collections import Counter
from types import UnionType
from typing import Any

from failsoft.plans.contract import META_STEP_ID, TaskStatus, task_status
from failsoft.plans.violations import Violation, Violations, quote


def validate_results(value: object) -> list[Violation]:
    """Return the violations of a result list; an empty list means it is valid."""
    violations = Violations()
    prefix, rows = _read_rows(value, violations)
    if rows is not None:
        _check_rows(prefix, rows, violations)
    return list(violations)


def _read_rows(value: object, violations: Violations) -> tuple[str, list[Any] | None]:
    if isinstance(value, list):
        return "", value
    if not isinstance(value, dict):
        violations.add_type("", "results_type", "an array of results", value)
        return "", None
    if "results" not in value:
        violations.add("", "results_missing", 'expected the key "results"')
        return "", None
    if not isinstance(value["results"], list):
        violations.add_type("/results", "results_type", "an array", value["results"])
        return "", None
    return "/results", value["results"]


def _check_rows(prefix: str, rows: list[Any], violations: Violations) -> None:
    dicts = ((index, row) for index, row in enumerate(rows) if isinstance(row, dict))
    metas = [index for index, row in dicts if row.get("step_id") == META_STEP_ID]
    _check_place_of_meta(prefix, rows, metas, violations)
    meta_indices = set(metas)
    steps = [(index, row) for index, row in enumerate(rows) if index not in meta_indices]
    for index, row in steps:
        if violations.full:
            return
        check_row(f"{prefix}/{index}", row, violations)
    _check_repeats(prefix, steps, violations)
    if metas:
        is_valid = len(violations) == 0
        path = f"{prefix}/{metas[-1]}"
        check_meta(path, rows[metas[-1]], violations)
        if is_valid and len(metas) == 1 and len(violations) == 0:
            _compare(path, rows[metas[0]], [row for _, row in steps], violations)


def _check_repeats(prefix: str, steps: list[tuple[int, Any]], violations: Violations) -> None:
    """Check that no successful step repeats an id; only a forced plan has repeated ids."""
    known_ids: set[str] = set()
    for index, row in steps:
        step_id = row.get("step_id") if isinstance(row, dict) else None
        if not isinstance(step_id, str):
            continue
        if step_id in known_ids and row.get("ok") is True:
            violations.add(
                f"{prefix}/{index}/step_id",
                "step_id_repeated",
                f"expected a unique id, got {quote(step_id)} again",
            )
        known_ids.add(step_id)


def _check_place_of_meta(
    prefix: str, rows: list[Any], metas: list[int], violations: Violations
) -> None:
    if not metas:
        violations.add(prefix, "meta_missing", f"expected {quote(META_STEP_ID)} as the last entry")
        return
    for index in metas[:-1]:
        violations.add(
            f"{prefix}/{index}", "meta_repeated", f"expected exactly one {quote(META_STEP_ID)}"
        )
    if metas[-1] != len(rows) - 1:
        violations.add(
            f"{prefix}/{metas[-1]}", "meta_not_last", "expected the summary to be the last entry"
        )


def _compare(
    path: str, meta: dict[str, Any], rows: list[dict[str, Any]], violations: Violations
) -> None:
    counts = Counter(_kind_of_row(row) for row in rows)
    actual_stats = {"total_steps": len(rows), **{key: counts[key] for key in COUNTS[1:]}}
    for key, actual in actual_stats.items():
        if meta["stats"][key] != actual:
            violations.add(
                f"{path}/stats/{key}", "stats_mismatch", f"expected {actual}, as the rows show"
            )
    _compare_lists(path, meta, rows, violations)
    _compare_status(path, meta, counts, rows, violations)


def _kind_of_row(row: dict[str, Any]) -> str:
    if row["skipped"]:
        return "skipped"
    return "ok" if row["ok"] else "failed"


def _failed_ids(rows: list[dict[str, Any]]) -> set[str]:
    return {row["step_id"] for row in rows if _kind_of_row(row) == "failed"}


def _compare_lists(
    path: str, meta: dict[str, Any], rows: list[dict[str, Any]], violations: Violations
) -> None:
    blocked, failed = set(meta["blocked_steps"]), set(meta["failed_steps"])
    all_ids, failed_ids = {row["step_id"] for row in rows}, _failed_ids(rows)
    not_ok = {row["step_id"] for row in rows if not row["ok"]}
    for key, allowed, expectation in (
        ("blocked_steps", not_ok, "a step that did not succeed"),
        ("failed_steps", failed_ids, "a step that failed"),
    ):
        listed_ids: set[str] = set()
        for index, step_id in enumerate(meta[key]):
            item_path = f"{path}/{key}/{index}"
            if step_id in listed_ids:
                violations.add(
                    item_path, "listed_twice", f"expected {quote(step_id)} in the list once"
                )
            listed_ids.add(step_id)
            if step_id not in all_ids:
                violations.add(
                    item_path, "step_unknown", f"expected the id of a row, got {quote(step_id)}"
                )
            elif step_id not in allowed:
                violations.add(
                    item_path, f"{key}_mismatch", f"expected {expectation}, got {quote(step_id)}"
                )
    for step_id in sorted(blocked & failed):
        violations.add(
            path, "lists_overlap", f"expected {quote(step_id)} in one of the two lists only"
        )
    for step_id in sorted(failed_ids - blocked - failed):
        violations.add(
            path, "failure_unlisted", f"expected {quote(step_id)} among the failed or blocked steps"
        )


def _compare_status(
    path: str,
    meta: dict[str, Any],
    counts: Counter[str],
    rows: list[dict[str, Any]],
    violations: Violations,
) -> None:
    unresolved = len(_failed_ids(rows).intersection(meta["blocked_steps"]))
    expected = task_status(
        total=counts.total(),
        unresolved=unresolved,
        failed=counts["failed"] - unresolved,
        skipped=counts["skipped"],
    )
    if meta["task_status"] != expected:
        violations.add(
            f"{path}/task_status", "task_status_mismatch", f"expected {expected}, as the rows show"
        )
    if meta["ok"] != (expected is TaskStatus.COMPLETED):
        violations.add(
            f"{path}/ok", "ok_mismatch", "expected true exactly when the task is COMPLETED"
        )
    if not meta["ok"] and not says_something(meta["reason"]):
        violations.add(
            f"{path}/reason", "failure_without_reason", "expected why the task is not COMPLETED"
        )
    if expected is TaskStatus.PARTIAL and meta["blocked_steps"]:
        violations.add(
            f"{path}/blocked_steps",
            "blocked_but_partial",
            "expected no blocked step: nothing failed",
        )


_ROW_KEYS = ("step_id", "tool", "ok", "skipped", "reason", "error")
# Types and their names in messages; true and false are not 1 or 0.
_Type = tuple[type | UnionType, str]
_TEXT: _Type = (str | None, "a string or null")
_BOOLEAN: _Type = (bool, "true or false")


def check_row(path: str, row: object, violations: Violations) -> None:
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
