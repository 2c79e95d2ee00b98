"""The results validator: what every list of results must keep.

Strict about what the contract names - true booleans, one `__meta__` and last, counts
and status that match the rows - and silent about extra keys. Takes the bare list or the
document `{"results": [...]}`; never raises for any JSON value.
"""

from collections import Counter
from typing import Any

from failsoft.plans.contract import META_STEP_ID, TaskStatus, task_status
from failsoft.plans.result_rows import COUNTS, check_meta, check_row, says_something
from failsoft.plans.violations import Violation, Violations, quote


def validate_results(value: object) -> list[Violation]:
    """Return the violations of a result list; an empty list means it is sound."""
    found = Violations()
    prefix, rows = _read_rows(value, found)
    if rows is not None:
        _check_rows(prefix, rows, found)
    return list(found)


def _read_rows(value: object, found: Violations) -> tuple[str, list[Any] | None]:
    if isinstance(value, list):
        return "", value
    if not isinstance(value, dict):
        found.add_type("", "results_type", "an array of results", value)
        return "", None
    if "results" not in value:
        found.add("", "results_missing", 'expected the key "results"')
        return "", None
    if not isinstance(value["results"], list):
        found.add_type("/results", "results_type", "an array", value["results"])
        return "", None
    return "/results", value["results"]


def _check_rows(prefix: str, rows: list[Any], found: Violations) -> None:
    metas = [index for index, row in enumerate(rows) if _is_meta(row)]
    _check_place_of_meta(prefix, rows, metas, found)
    places = set(metas)
    steps = [(index, row) for index, row in enumerate(rows) if index not in places]
    for index, row in steps:
        if found.full:
            return
        check_row(f"{prefix}/{index}", row, found)
    _check_repeats(prefix, steps, found)
    if metas:
        whole = len(found) == 0
        path = f"{prefix}/{metas[-1]}"
        check_meta(path, rows[metas[-1]], found)
        if whole and len(metas) == 1 and len(found) == 0:
            _compare(path, rows[metas[0]], [row for _, row in steps], found)


def _check_repeats(prefix: str, steps: list[tuple[int, Any]], found: Violations) -> None:
    """A step that succeeded has its id alone; only a plan forced to run repeats one."""
    seen: set[str] = set()
    for index, row in steps:
        step_id = row.get("step_id") if isinstance(row, dict) else None
        if not isinstance(step_id, str):
            continue
        if step_id in seen and row.get("ok") is True:
            found.add(
                f"{prefix}/{index}/step_id",
                "step_id_repeated",
                f"expected a unique id, got {quote(step_id)} again",
            )
        seen.add(step_id)


def _is_meta(row: object) -> bool:
    return isinstance(row, dict) and row.get("step_id") == META_STEP_ID


def _check_place_of_meta(prefix: str, rows: list[Any], metas: list[int], found: Violations) -> None:
    if not metas:
        found.add(prefix, "meta_missing", f"expected {quote(META_STEP_ID)} as the last entry")
        return
    for index in metas[:-1]:
        found.add(
            f"{prefix}/{index}", "meta_repeated", f"expected exactly one {quote(META_STEP_ID)}"
        )
    if metas[-1] != len(rows) - 1:
        found.add(
            f"{prefix}/{metas[-1]}", "meta_not_last", "expected the summary to be the last entry"
        )


def _compare(
    path: str, meta: dict[str, Any], rows: list[dict[str, Any]], found: Violations
) -> None:
    """Compare a well-formed summary with the well-formed rows it sums up."""
    counts = Counter(_kind_of_row(row) for row in rows)
    for key, actual in {
        "total_steps": len(rows),
        **{key: counts[key] for key in COUNTS[1:]},
    }.items():
        if meta["stats"][key] != actual:
            found.add(
                f"{path}/stats/{key}", "stats_mismatch", f"expected {actual}, as the rows show"
            )
    _compare_lists(path, meta, rows, found)
    _compare_status(path, meta, counts, rows, found)


def _kind_of_row(row: dict[str, Any]) -> str:
    if row["skipped"]:
        return "skipped"
    return "ok" if row["ok"] else "failed"


def _failed_ids(rows: list[dict[str, Any]]) -> set[str]:
    return {row["step_id"] for row in rows if _kind_of_row(row) == "failed"}


def _compare_lists(
    path: str, meta: dict[str, Any], rows: list[dict[str, Any]], found: Violations
) -> None:
    blocked, failed = set(meta["blocked_steps"]), set(meta["failed_steps"])
    every, really_failed = {row["step_id"] for row in rows}, _failed_ids(rows)
    not_ok = {row["step_id"] for row in rows if not row["ok"]}
    for key, allowed, what in (
        ("blocked_steps", not_ok, "a step that did not succeed"),
        ("failed_steps", really_failed, "a step that failed"),
    ):
        listed: set[str] = set()
        for place, step_id in enumerate(meta[key]):
            at = f"{path}/{key}/{place}"
            if step_id in listed:
                found.add(at, "listed_twice", f"expected {quote(step_id)} in the list once")
            listed.add(step_id)
            if step_id not in every:
                found.add(at, "step_unknown", f"expected the id of a row, got {quote(step_id)}")
            elif step_id not in allowed:
                found.add(at, f"{key}_mismatch", f"expected {what}, got {quote(step_id)}")
    for step_id in sorted(blocked & failed):
        found.add(path, "lists_overlap", f"expected {quote(step_id)} in one of the two lists only")
    for step_id in sorted(really_failed - blocked - failed):
        found.add(
            path, "failure_unlisted", f"expected {quote(step_id)} among the failed or blocked steps"
        )


def _compare_status(
    path: str,
    meta: dict[str, Any],
    counts: Counter[str],
    rows: list[dict[str, Any]],
    found: Violations,
) -> None:
    unresolved = len(_failed_ids(rows).intersection(meta["blocked_steps"]))
    expected = task_status(
        total=counts.total(),
        unresolved=unresolved,
        failed=counts["failed"] - unresolved,
        skipped=counts["skipped"],
    )
    if meta["task_status"] != expected:
        found.add(
            f"{path}/task_status", "task_status_mismatch", f"expected {expected}, as the rows show"
        )
    if meta["ok"] != (expected is TaskStatus.COMPLETED):
        found.add(f"{path}/ok", "ok_mismatch", "expected true exactly when the task is COMPLETED")
    if not meta["ok"] and not says_something(meta["reason"]):
        found.add(
            f"{path}/reason", "failure_without_reason", "expected why the task is not COMPLETED"
        )
    if expected is TaskStatus.PARTIAL and meta["blocked_steps"]:
        found.add(
            f"{path}/blocked_steps",
            "blocked_but_partial",
            "expected no blocked step: nothing failed",
        )
