"""The results validator beyond the golden cases: many faults at once."""

from typing import Any

from failsoft.plans.contract import MAX_VIOLATIONS
from failsoft.plans.results import validate_results


def test_only_the_first_100_violations_are_kept() -> None:
    assert len(validate_results([5] * 10_000)) == MAX_VIOLATIONS


def test_a_list_that_is_full_of_faults_hides_no_crash_behind_them() -> None:
    rows: list[Any] = [5] * MAX_VIOLATIONS
    broken: dict[str, Any] = {"step_id": "__meta__", "stats": {}}
    assert len(validate_results([*rows, broken])) == MAX_VIOLATIONS
    assert len(validate_results([*rows[:-1], {}, broken])) == MAX_VIOLATIONS


def test_counts_of_any_length_are_no_crash() -> None:
    huge = 10**4_299
    stats = dict.fromkeys(["total_steps", "ok", "skipped", "failed"], huge)
    violations = validate_results([{"step_id": "__meta__", "stats": stats}])
    assert {"count_type"} <= {violation.code for violation in violations}


def test_the_bare_list_and_the_document_are_judged_alike() -> None:
    rows = [{"step_id": "a"}]
    bare = [(v.path, v.code) for v in validate_results(rows)]
    inside = [(v.path, v.code) for v in validate_results({"results": rows})]
    assert inside == [(f"/results{path}", code) for path, code in bare]


def test_rows_of_a_forced_plan_may_share_an_id() -> None:
    row = {
        "step_id": "a",
        "tool": "echo",
        "ok": True,
        "skipped": False,
        "reason": None,
        "error": None,
    }
    failed = {**row, "ok": False, "reason": "duplicate_step_id"}
    meta = {
        "step_id": "__meta__",
        "ok": False,
        "skipped": False,
        "reason": "1 of 2 steps failed",
        "task_status": "FAILED",
        "stats": {"total_steps": 2, "ok": 1, "skipped": 0, "failed": 1},
        "blocked_steps": [],
        "failed_steps": ["a"],
    }
    assert validate_results([row, failed, meta]) == []
