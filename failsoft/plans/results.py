"""The results validator.

It is strict about what the contract defines - booleans, one `__meta__` at the end, counts and
status that match the rows - and ignores extra keys. It accepts the bare list or the document
`{"results": [...]}`, and never raises for any JSON value.
"""

from collections import Counter
from typing import Any

from failsoft.plans.contract import META_STEP_ID, TaskStatus, task_status
from failsoft.plans.result_rows import COUNTS, check_meta, check_row, says_something
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
    metas = [index for index, row in enumerate(rows) if _is_meta(row)]
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


def _is_meta(row: object) -> bool:
    return isinstance(row, dict) and row.get("step_id") == META_STEP_ID


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
    """Compare a well-formed summary with its well-formed rows."""
    counts = Counter(_kind_of_row(row) for row in rows)
    for key, actual in {
        "total_steps": len(rows),
        **{key: counts[key] for key in COUNTS[1:]},
    }.items():
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
