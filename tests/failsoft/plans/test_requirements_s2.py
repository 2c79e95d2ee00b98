"""Section S2 row by row: the name of each test is the row it proves."""

import re
from pathlib import Path
from typing import Any

import pytest

from failsoft.plans.execution import CallContext, Seams, ToolNotFoundError, execute
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload

_DOCUMENT = Path("docs/architecture/plan-execution-contract.md")


def _codes(*steps: Any) -> list[str]:
    return [violation.code for violation in validate_payload({"steps": list(steps)})]


def _step(step_id: Any, *dependencies: str, tool: Any = "echo") -> dict[str, Any]:
    return {"step_id": step_id, "dependencies": list(dependencies), "tool": tool}


class Tools:
    """`echo` returns its arguments, `fail` raises; every call is written down."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.called: list[str] = []
        self.stop_after = stop_after

    def call(self, name: str, args: dict[str, Any], context: CallContext) -> object:
        if name not in {"echo", "fail"}:
            raise ToolNotFoundError(name)
        self.called.append(name)
        if name == "fail":
            raise ValueError("failed on purpose")
        return args

    def stop(self) -> str | None:
        is_over = self.stop_after is not None and len(self.called) >= self.stop_after
        return "cancelled" if is_over else None

    def run(self, *steps: dict[str, Any]) -> list[dict[str, Any]]:
        rows = execute({"steps": list(steps)}, Seams(self.call, self.stop))
        assert validate_results(rows) == []
        return rows


def _sound() -> list[dict[str, Any]]:
    """Results of one ok, one failed and one skipped step."""
    return Tools().run(_step("a"), _step("b", tool="fail"), _step("c", "b"))


def _codes_after(row: int, **changes: Any) -> list[str]:
    rows = _sound()
    rows[row] |= changes
    return [violation.code for violation in validate_results(rows)]


def _codes_without(row: int, key: str) -> list[str]:
    rows = _sound()
    del rows[row][key]
    return [violation.code for violation in validate_results(rows)]


# The payload


def test_s2_4_steps_are_the_only_required_key() -> None:
    assert [v.code for v in validate_payload({})] == ["steps_missing"]
    assert _codes(_step("step_1")) == []


def test_s2_5_a_tool_may_be_a_string_and_the_title_is_optional() -> None:
    assert _codes({"step_id": "step_1", "dependencies": [], "tool": "echo"}) == []
    assert _codes({**_step("step_1"), "title": "Say it"}) == []


def test_s2_6_a_tool_may_be_an_object_of_name_and_args() -> None:
    assert _codes(_step("step_1", tool={"name": "echo", "args": {"x": 1}})) == []


@pytest.mark.parametrize("step_id", ["", " ", None, 3])
def test_s2_7_a_step_id_is_a_non_empty_string(step_id: Any) -> None:
    (code,) = _codes(_step(step_id))
    assert code in {"step_id_empty", "step_id_type"}


@pytest.mark.parametrize("dependencies", ["step_1", None, {}])
def test_s2_9_dependencies_are_a_list(dependencies: Any) -> None:
    step = {"step_id": "step_2", "dependencies": dependencies, "tool": "echo"}
    assert _codes(_step("step_1"), step) == ["dependencies_type"]


@pytest.mark.parametrize("tool", ["", "  ", 5, [], None, {}])
def test_s2_11_a_tool_is_a_non_empty_string_or_an_object(tool: Any) -> None:
    (code,) = _codes(_step("step_1", tool=tool))
    assert code in {"tool_empty", "tool_type", "tool_name_missing"}


@pytest.mark.parametrize("args", [[], "x", 3, None])
def test_s2_12_args_are_an_object_in_both_places(args: Any) -> None:
    assert _codes(_step("a", tool={"name": "echo", "args": args})) == ["args_type"]
    assert _codes({**_step("a"), "args": args}) == ["args_type"]


def test_s2_13_args_in_both_places_are_refused() -> None:
    step = {**_step("a", tool={"name": "echo", "args": {"x": 1}}), "args": {"y": 2}}
    assert _codes(step) == ["args_mixed"]


def test_s2_14_step_numbers_start_at_1() -> None:
    assert _codes(_step("step_2"), _step("step_3")) == ["step_sequence_start"]


def test_s2_16_named_ids_have_no_sequence() -> None:
    assert _codes(_step("fetch"), _step("save", "fetch")) == []


# The execution


def test_s2_17_an_unknown_dependency_fails_fast() -> None:
    tools = Tools()
    row, _ = tools.run(_step("a", "nowhere"))
    assert (row["ok"], row["skipped"], tools.called) == (False, False, [])
    assert "nowhere" in row["reason"]


def test_s2_18_a_step_is_skipped_when_its_dependency_failed() -> None:
    tools = Tools()
    _, row, _ = tools.run(_step("a", tool="fail"), _step("b", "a"))
    assert (row["ok"], row["skipped"], tools.called) == (False, True, ["fail"])


def test_s2_20_a_tool_that_is_not_found_fails_its_step() -> None:
    row, _ = Tools().run(_step("a", tool="no_such_tool"))
    assert (row["ok"], row["skipped"]) == (False, False)
    assert "no_such_tool" in row["error"]


def test_s2_27_the_summary_has_its_eight_keys_also_after_failures() -> None:
    for steps in ([_step("a")], [_step("a", tool="fail")], [_step("a", "a")], []):
        meta = Tools().run(*steps)[-1]
        assert list(meta) == [
            "step_id",
            "ok",
            "skipped",
            "reason",
            "task_status",
            "stats",
            "blocked_steps",
            "failed_steps",
        ]
        assert (meta["step_id"], meta["skipped"]) == ("__meta__", False)


def test_s2_28_the_counts_add_up() -> None:
    stats = _sound()[-1]["stats"]
    assert stats == {"total_steps": 3, "ok": 1, "skipped": 1, "failed": 1}
    assert all(type(count) is int for count in stats.values())
    changed = {**stats, "ok": 2}
    assert _codes_after(3, stats=changed) == ["stats_sum"]


def test_s2_29_completed_means_that_every_step_is_ok() -> None:
    meta = Tools().run(_step("a"), _step("b", "a"))[-1]
    assert (meta["task_status"], meta["ok"]) == ("COMPLETED", True)


def test_s2_30_partial_means_skipped_for_a_cause_that_is_no_failure() -> None:
    meta = Tools(stop_after=1).run(_step("a"), _step("b"))[-1]
    assert (meta["task_status"], meta["ok"]) == ("PARTIAL", False)
    assert (meta["blocked_steps"], meta["failed_steps"]) == ([], [])


def test_s2_31_failed_means_that_a_step_failed() -> None:
    meta = Tools().run(_step("a", tool="no_such_tool"), _step("b", "a"))[-1]
    assert (meta["task_status"], meta["failed_steps"]) == ("FAILED", ["a"])


def test_s2_32_blocked_means_that_dependencies_could_not_be_resolved() -> None:
    meta = Tools().run(_step("a", "nowhere"), _step("b"))[-1]
    assert (meta["task_status"], meta["blocked_steps"]) == ("BLOCKED", ["a"])


# The results


def test_s2_23_skipped_and_ok_is_a_violation() -> None:
    assert _codes_after(2, ok=True) == ["skipped_but_ok"]


def test_s2_24_ok_with_an_error_is_a_violation() -> None:
    assert _codes_after(0, error="x") == ["ok_with_error"]


def test_s2_25_a_failure_without_error_and_reason_is_a_violation() -> None:
    assert _codes_after(1, error=None, reason=None) == ["failure_without_cause"]
    assert _codes_after(1, error=None) == []
    assert _codes_after(1, reason=None) == []


def test_s2_35_the_summary_is_there_once_and_last() -> None:
    rows = _sound()
    for broken, code in (
        (rows[:-1], "meta_missing"),
        ([rows[-1], *rows[:-1]], "meta_not_last"),
        ([*rows, rows[-1]], "meta_repeated"),
    ):
        assert [violation.code for violation in validate_results(broken)] == [code]


def test_s2_36_rows_are_consistent_in_themselves() -> None:
    assert _codes_after(2, ok=True, error="x") == ["skipped_but_ok"]
    assert _codes_after(2, reason=None) == ["skip_without_reason"]


def test_s2_37_the_status_is_there_and_one_of_four() -> None:
    assert _codes_without(3, "task_status") == ["key_missing"]
    assert _codes_after(3, task_status="DONE") == ["task_status_unknown"]
    assert _codes_after(3, task_status="COMPLETED") == ["task_status_mismatch"]


def test_s2_38_the_counts_are_there() -> None:
    assert _codes_without(3, "stats") == ["key_missing"]


# The contract as a document


def test_s2_41_breaking_a_rule_turns_a_golden_case_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.plans.validation.check_sequence", lambda *_args: None)
    assert _codes(_step("step_2")) != ["step_sequence_start"]
    monkeypatch.undo()
    assert _codes(_step("step_2")) == ["step_sequence_start"]


def test_s2_48_the_contract_is_documented_in_production_tone() -> None:
    text = _DOCUMENT.read_text(encoding="utf-8")
    assert not re.search(r"\b(day \d|lesson|exercise|tutorial|homework)\b", text, re.IGNORECASE)


def test_s2_50_every_way_to_fail_is_documented() -> None:
    text = _DOCUMENT.read_text(encoding="utf-8")
    rows = Tools().run(
        _step("a", "nowhere"),
        _step("b", "b"),
        _step("c", "d"),
        _step("d", "c"),
        _step("e", tool="fail"),
        _step("f", tool="no_such_tool"),
        _step("g", "f"),
        _step("h", "g"),
        _step("h"),
        _step("i", tool=5),
        {**_step("j"), "args": {"x": "$a_step.output"}},
    )
    reasons = {row["reason"].partition(":")[0] for row in rows[:-1]}
    assert len(reasons) == 10
    for name in reasons | {"COMPLETED", "PARTIAL", "FAILED", "BLOCKED"}:
        assert f"`{name}`" in text
