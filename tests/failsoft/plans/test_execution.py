"""The executor beyond the golden cases: whatever tools do, the plan goes on."""

import datetime as dt
import itertools
import math
import sys
from typing import Any

import pytest

from failsoft.plans.execution import (
    CallContext,
    Seams,
    ToolArgumentsError,
    ToolNotFoundError,
    ToolTimeoutError,
    execute,
)
from failsoft.plans.resolution import resolve_plan
from failsoft.plans.results import validate_results


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def _run(function: Any, *, seams: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Run a plan of two independent steps whose first calls `function`."""
    plan = {"steps": [{"step_id": "a", "tool": "first"}, {"step_id": "b", "tool": "echo"}]}

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        return function() if name == "first" else args

    rows = execute(plan, Seams(call_tool, **(seams or {})))
    assert validate_results(rows) == []
    return rows


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (ValueError("bad value"), "tool_failed", "ValueError: bad value"),
        (ToolNotFoundError("x"), "tool_not_found", 'Tool "first" is not registered.'),
        (ToolArgumentsError("no text"), "invalid_arguments", "no text"),
        (ToolTimeoutError("no answer"), "tool_timeout", "no answer"),
        (RecursionError("deep"), "tool_failed", "RecursionError: deep"),
        (MemoryError(), "tool_failed", "MemoryError: "),
        (SystemExit(3), "tool_failed", "SystemExit: 3"),
        (SpeechlessError(), "tool_failed", "SpeechlessError: (the exception has no text)"),
        (ValueError("nul \0 and \ud800"), "tool_failed", "ValueError: nul \ufffd and \ufffd"),
    ],
)
def test_s2_21_whatever_a_tool_raises_fails_its_step_only(
    error: BaseException, reason: str, text: str
) -> None:
    first, second, meta = _run(lambda: _raise(error))
    assert (first["ok"], first["skipped"]) == (False, False)
    assert (first["reason"], first["error"]) == (reason, text)
    assert second["ok"]
    assert meta["task_status"] == "FAILED"


def test_s2_21_the_error_text_is_redacted_before_it_is_cut() -> None:
    def redact(text: str) -> str:
        return text.replace("s3cret" * 500, "[REDACTED:known]")

    first, *_ = _run(
        lambda: _raise(ValueError("x" * 1_990 + "s3cret" * 500)), seams={"redact": redact}
    )
    assert "s3cret" not in first["error"]
    assert len(first["error"]) < 2_100


def test_an_interrupt_of_the_process_is_not_a_tools_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(lambda: _raise(KeyboardInterrupt()))


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (None, None),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({"a": "\0\ud800"}, {"a": "\ufffd\ufffd"}),
        (1.5, 1.5),
        (True, True),
    ],
)
def test_s2_22_outputs_are_json(value: object, output: object) -> None:
    first, *_ = _run(lambda: value)
    assert (first["ok"], first["output"]) == (True, output)


def _nest(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1: 2},
        {"a": {1, 2}},
        math.nan,
        [math.inf],
        b"bytes",
        dt.date(2026, 1, 1),
        10**2_000,
        _nest(100),
        _nest(sys.getrecursionlimit() * 2),
        ["x" * 1024 * 1024, "y"],
        [0] * 200_001,
    ],
)
def test_an_output_that_cannot_be_stored_fails_the_step(value: object) -> None:
    first, *_ = _run(lambda: value)
    assert (first["ok"], first["reason"]) == (False, "unusable_output")
    assert "output" not in first


def test_a_long_output_is_shown_by_its_beginning_but_referred_to_whole() -> None:
    plan = {
        "steps": [
            {"step_id": "a", "tool": "echo", "args": {"x": "\u00fc" * 40_000, "n": 7}},
            {"step_id": "b", "tool": "echo", "args": {"n": "$a.output.n"}},
        ]
    }
    first, second, _ = execute(plan, Seams(lambda name, args, context: args))
    assert first["output"]["truncated"]
    assert first["output"]["bytes"] > 80_000
    assert len(first["output"]["preview"]) == 2_000
    assert second["output"] == {"n": 7}


def test_an_output_just_below_the_limit_is_shown_whole() -> None:
    first, *_ = _run(lambda: "\u00fc" * 20_000)
    assert first["output"] == "\u00fc" * 20_000


def test_what_is_shown_is_redacted_and_what_is_referred_to_is_not() -> None:
    calls: list[Any] = []

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        calls.append(args)
        return args

    plan = {
        "steps": [
            {"step_id": "a", "tool": "echo", "args": {"x": "secret"}},
            {"step_id": "b", "tool": "echo", "args": {"y": "$a.output.x"}},
        ]
    }
    rows = execute(plan, Seams(call_tool, redact_json=lambda value: "masked"))
    assert [row.get("output") for row in rows] == ["masked", "masked", None]
    assert calls == [{"x": "secret"}, {"y": "secret"}]


def test_ids_and_tool_names_are_redacted_wherever_they_are_shown() -> None:
    plan = {
        "steps": [
            {"step_id": "secret-a", "tool": "secret-tool", "title": "secret"},
            {"step_id": "b", "dependencies": ["secret-a"], "tool": "echo"},
            {"step_id": "c", "dependencies": ["secret-z"], "tool": "echo"},
            {"step_id": "d", "tool": "echo", "args": {"x": "$secret-y.output"}},
        ]
    }

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        raise ToolNotFoundError(name)

    rows = execute(plan, Seams(call_tool, redact=lambda text: text.replace("secret", "***")))
    assert "secret" not in repr(rows)
    assert validate_results(rows) == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_s2_32_the_status_is_the_same_in_any_order(order: tuple[int, ...]) -> None:
    steps = [
        {"step_id": "ok", "tool": "echo"},
        {"step_id": "failing", "tool": "nothing"},
        {"step_id": "behind", "dependencies": ["failing"], "tool": "echo"},
        {"step_id": "lost", "dependencies": ["nowhere"], "tool": "echo"},
    ]

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        if name == "nothing":
            raise ToolNotFoundError(name)
        return args

    *_, meta = execute({"steps": [steps[i] for i in order]}, Seams(call_tool))
    assert meta["task_status"] == "BLOCKED"
    assert meta["stats"] == {"total_steps": 4, "ok": 1, "skipped": 1, "failed": 2}
    assert set(meta["blocked_steps"]) == {"behind", "lost"}
    assert meta["failed_steps"] == ["failing"]


def test_s2_19_a_step_behind_a_skipped_one_is_skipped_too() -> None:
    chain = [("a", []), ("b", ["a"]), ("c", ["b"]), ("d", ["c"])]
    plan = {
        "steps": [
            {"step_id": step, "dependencies": needed, "tool": f"tool_{step}"}
            for step, needed in chain
        ]
    }
    called: list[str] = []

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        called.append(name)
        raise ToolNotFoundError(name)

    rows = execute(plan, Seams(call_tool))

    assert called == ["tool_a"]
    assert [(row["ok"], row["skipped"]) for row in rows[:4]] == [
        (False, False),
        (False, True),
        (False, True),
        (False, True),
    ]
    assert rows[-1]["blocked_steps"] == ["b", "c", "d"]


def test_a_reference_inside_lists_is_waited_for_and_filled_in() -> None:
    plan = {
        "steps": [
            {"step_id": "b", "tool": {"name": "b", "args": {"all": [["$a.output.x"]]}}},
            {"step_id": "a", "tool": "a"},
        ]
    }
    called: list[tuple[str, dict[str, Any]]] = []

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        called.append((name, args))
        return {"x": 7}

    execute(plan, Seams(call_tool))

    assert called == [("a", {}), ("b", {"all": [[7]]})]


def test_a_step_that_depends_on_itself_is_not_among_what_it_waits_for() -> None:
    step = {"step_id": "a", "dependencies": ["a", "b"], "tool": "echo"}
    plan = {"steps": [{"step_id": "b", "tool": "echo"}, step]}

    planned = resolve_plan(plan).steps[1]

    assert planned.dependencies == (0,)
    assert planned.defect is not None


def test_a_failed_dependency_is_named_before_a_skipped_one() -> None:
    plan = {
        "steps": [
            {"step_id": "a", "tool": "nothing"},
            {"step_id": "b", "dependencies": ["a"], "tool": "echo"},
            {"step_id": "c", "tool": "nothing"},
            {"step_id": "d", "dependencies": ["b", "c"], "tool": "echo"},
        ]
    }

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        raise ToolNotFoundError(name)

    rows = execute(plan, Seams(call_tool))
    assert rows[3]["reason"] == 'dependency_failed: "c" (tool_not_found)'


def test_a_chain_of_10_000_steps_needs_no_recursion() -> None:
    steps = [{"step_id": "s0", "tool": "nothing"}] + [
        {"step_id": f"s{k}", "dependencies": [f"s{k - 1}"], "tool": "echo"}
        for k in range(1, 10_000)
    ]

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        raise ToolNotFoundError(name)

    rows = execute({"steps": steps}, Seams(call_tool))
    assert rows[-1]["stats"]["skipped"] == 9_999
    assert 'root cause "s0"' in rows[-2]["reason"]


def test_a_cycle_of_10_000_steps_needs_no_recursion() -> None:
    steps = [
        {"step_id": f"s{k}", "dependencies": [f"s{(k + 1) % 10_000}"], "tool": "echo"}
        for k in range(10_000)
    ]
    rows = execute({"steps": steps}, Seams(lambda name, args, context: args))
    assert rows[-1]["stats"]["failed"] == 10_000


def test_forced_arguments_deeper_than_any_stack_fail_their_step() -> None:
    plan = {"steps": [{"step_id": "a", "tool": "echo", "args": {"x": _nest(100_000)}}]}
    rows = execute(plan, Seams(lambda name, args, context: args))
    assert rows[0]["ok"] is False


def test_a_forced_list_that_is_too_long_and_malformed_is_unresolved() -> None:
    dependencies: list[Any] = ["a"] * 300 + [[]]
    plan = {"steps": [{"step_id": "a", "tool": "echo", "dependencies": dependencies}]}
    rows = execute(plan, Seams(lambda name, args, context: args))
    assert rows[0]["reason"] == "malformed_dependencies"


def test_a_forced_list_that_is_merely_too_long_runs() -> None:
    steps: list[dict[str, Any]] = [{"step_id": f"d{k}", "tool": "echo"} for k in range(300)]
    steps.append({"step_id": "z", "tool": "echo", "dependencies": [f"d{k}" for k in range(300)]})
    rows = execute({"steps": steps}, Seams(lambda name, args, context: args))
    assert rows[-1]["task_status"] == "COMPLETED"


def test_a_step_that_refers_to_itself_fails() -> None:
    plan = {"steps": [{"step_id": "a", "tool": "echo", "args": {"x": "$a.output"}}]}
    rows = execute(plan, Seams(lambda name, args, context: args))
    assert rows[0]["reason"] == "unresolved_reference"
    assert "no output yet" in rows[0]["error"]


def test_references_cannot_multiply_into_more_than_memory_holds() -> None:
    steps: list[dict[str, Any]] = [{"step_id": "s0", "tool": "echo", "args": {"x": [0] * 1_000}}]
    for k in range(1, 60):
        twice = {"a": f"$s{k - 1}.output", "b": f"$s{k - 1}.output"}
        steps.append({"step_id": f"s{k}", "tool": "echo", "args": twice})
    rows = execute({"steps": steps}, Seams(lambda name, args, context: args))
    reasons = [row["reason"] for row in rows]
    assert "invalid_arguments" in reasons
    assert "out of bounds" in rows[reasons.index("invalid_arguments")]["error"]


def test_s29_references_walk_json_and_nothing_else() -> None:
    texts = ["$a.output.__class__", "$a.output.items", "$a.output.x.-1", "$a.output.x.9"]
    for text in texts:
        plan = {
            "steps": [
                {"step_id": "a", "tool": "echo", "args": {"x": [1]}},
                {"step_id": "b", "tool": "echo", "args": {"y": text}},
            ]
        }
        rows = execute(plan, Seams(lambda name, args, context: args))
        assert rows[1]["reason"] == "unresolved_reference"
