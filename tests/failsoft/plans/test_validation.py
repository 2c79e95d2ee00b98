"""The payload validator beyond the golden cases: bounds, messages, hostile values."""

import time
from collections import OrderedDict
from enum import Enum, IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failsoft.plans.contract import MAX_VIOLATIONS
from failsoft.plans.execution import CallContext, Seams, ToolNotFoundError, execute
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload


def _plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"steps": list(steps)}


def _step(step_id: Any, *dependencies: Any, **args: Any) -> dict[str, Any]:
    return {
        "step_id": step_id,
        "dependencies": list(dependencies),
        "tool": {"name": "echo", "args": args},
    }


def _codes(payload: object, **options: Any) -> list[str]:
    return [violation.code for violation in validate_payload(payload, **options)]


def _nest(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_s2_8_the_error_names_the_duplicate_id() -> None:
    (violation,) = validate_payload(_plan(_step("fetch"), _step("fetch")))
    assert '"fetch"' in violation.message
    assert "step 1" in violation.message


@pytest.mark.parametrize(
    ("key", "meant"),
    [("DependsOn", "dependencies"), ("pre-requisites", "dependencies"), ("Tool Input", "args"),
     ("stepId", "step_id"), ("TITLE", "title"), ("dry_run", None), ("when", None)],
)  # fmt: skip
def test_s2_49_the_error_of_an_unknown_key_names_the_key_that_it_stands_for(
    key: str, meant: str | None
) -> None:
    plan = _plan({**_step("fetch"), key: "x"})
    assert validate_payload(plan) == []
    (violation,) = validate_payload(plan, strict=True)
    assert (violation.path, violation.code) == (f"/steps/0/{key}", "key_unknown")
    assert violation.message.endswith(
        f'got "{key}"; "{meant}" is the key for it' if meant else f'got "{key}"'
    )


def test_s2_10_the_error_names_the_step_and_the_unknown_id() -> None:
    (violation,) = validate_payload(_plan(_step("save", "nowhere")))
    assert '"save"' in violation.message
    assert '"nowhere"' in violation.message


def test_s2_15_the_error_names_the_missing_number() -> None:
    (violation,) = validate_payload(_plan(_step("step_1"), _step("step_3")))
    assert '"step_2"' in violation.message
    assert '"step_3"' in violation.message


def test_a_cycle_is_shown_as_a_path_and_a_long_one_is_cut() -> None:
    steps = [_step(f"s{k}", f"s{(k + 1) % 50}") for k in range(50)]
    (violation,) = validate_payload(_plan(*steps))
    assert violation.message.count("->") == 6
    assert violation.message.endswith('... -> "s0"')


def test_s2_49_a_violation_is_path_code_and_message() -> None:
    (violation,) = validate_payload({})
    assert violation.as_dict() == {
        "path": "",
        "code": "steps_missing",
        "message": 'expected the key "steps"',
    }


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        ({"x": "y" * 65_536}, []),
        ({"x": "y" * 65_537}, ["string_too_long"]),
        ({"x": "\u00fc" * 40_000}, ["string_too_long"]),  # bytes count, not characters
        ({"k" * 70_000: 1}, ["string_too_long"]),
        ({"x": _nest(59)}, []),
        ({"x": _nest(60)}, ["too_deep"]),
        ({"x": _nest(5000)}, ["too_deep"]),
        ({"x": [0] * 200_000}, ["too_many_values"]),
        ({"x": float("nan")}, ["number_not_finite"]),
        ({"x": float("-inf")}, ["number_not_finite"]),
        ({"x": 10**300}, []),
        ({"x": 10**10_000}, ["number_too_large"]),
        ({"x": {1: 2}}, ["key_type"]),
        ({"x": object()}, ["not_json"]),
        ({"x": b"bytes"}, ["not_json"]),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_place(
    args: dict[str, Any], codes: list[str]
) -> None:
    violations = validate_payload(_plan(_step("a", **args)))
    assert [violation.code for violation in violations] == codes
    for violation in violations:
        assert violation.path.startswith("/steps/0/tool/args") or (
            violation.code == "too_many_values"
        )


def test_10_000_steps_are_allowed_and_one_more_is_not() -> None:
    steps = [_step(f"step_{k}") for k in range(1, 10_002)]
    assert _codes(_plan(*steps)) == ["steps_too_many"]
    assert _codes(_plan(*steps[:-1])) == []


def test_256_dependencies_are_allowed_and_one_more_is_not() -> None:
    ids = [f"d{k}" for k in range(257)]
    declared = [_step(step_id) for step_id in ids]
    assert _codes(_plan(*declared, _step("last", *ids[:-1]))) == []
    assert _codes(_plan(*declared, _step("last", *ids))) == ["dependencies_too_many"]


def test_only_the_first_100_violations_are_kept_and_quickly() -> None:
    steps = [_step(f"s{k}", *["nowhere"] * 50) for k in range(3_000)]
    started = time.process_time()
    assert len(validate_payload(_plan(*steps))) == MAX_VIOLATIONS
    assert len(validate_payload({"steps": [5] * 10_000})) == MAX_VIOLATIONS
    assert time.process_time() - started < 5


def test_a_long_name_is_cut_in_messages() -> None:
    (violation,) = validate_payload(_plan(_step("a", "x" * 5_000)))
    assert len(violation.message) < 300


def test_lone_surrogates_and_nul_cannot_reach_a_message() -> None:
    violations = validate_payload(_plan(_step("a\ud800", "b\0\udfff")))
    text = "".join(violation.message + violation.path for violation in violations)
    assert text.encode("utf-8")
    assert "\0" not in text


def test_dependents_of_a_malformed_id_are_not_at_fault() -> None:
    assert _codes(_plan(_step("step_0"), _step("next", "step_0"))) == ["step_id_number"]


def test_a_repeated_dependency_is_no_violation() -> None:
    assert _codes(_plan(_step("a"), _step("b", "a", "a"))) == []


def test_a_null_title_is_no_title() -> None:
    assert _codes(_plan({**_step("a"), "title": None})) == []


def test_strict_without_known_tools_checks_the_rest() -> None:
    assert _codes(_plan(_step("a"), {"step_id": "b", "tool": "x"}), strict=True) == [
        "tool_not_object"
    ]


def test_strict_names_the_nearest_tool() -> None:
    plan = _plan({"step_id": "a", "tool": {"name": "ecko"}})
    (violation,) = validate_payload(plan, strict=True, known_tools=["echo", "sleep"])
    assert 'the nearest is "echo"' in violation.message


def test_strict_survives_steps_that_are_no_objects() -> None:
    assert _codes({"steps": [5]}, strict=True, known_tools=["echo"]) == ["step_type"]


_ids = st.sampled_from(["a", "b", "step_1", "step_2", "step_01", "__meta__", "", "\0"])
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | _ids,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
_odd = st.one_of(_ids, _json)
_steps = st.fixed_dictionaries(
    {},
    optional={
        "step_id": _odd,
        "title": _json,
        "dependencies": st.lists(_odd, max_size=4) | _json,
        "tool": st.sampled_from(["echo", "boom"])
        | st.fixed_dictionaries({}, optional={"name": _odd, "args": _json}),
        "args": _json | st.dictionaries(_ids, st.sampled_from(["$a.output", "$b.output.x"])),
    },
)
_plans = st.fixed_dictionaries({"steps": st.lists(_steps | _json, max_size=6)}) | _json


def _call(name: str, args: dict[str, Any], context: CallContext) -> object:
    if name == "echo":
        return args
    if name == "boom":
        raise ValueError(args)
    raise ToolNotFoundError(name)


@pytest.mark.slow
@given(_plans)
@settings(max_examples=120, deadline=None)
def test_no_json_value_makes_the_validator_raise(payload: object) -> None:
    for strict in (False, True):
        violations = validate_payload(payload, strict=strict, known_tools=["echo"])
        for violation in violations:
            assert f"{violation.path}{violation.message}".encode()


@pytest.mark.slow
@given(_plans)
@settings(max_examples=120, deadline=None)
def test_whatever_is_forced_ends_in_results_that_keep_the_contract(payload: object) -> None:
    results = execute(payload, Seams(_call))
    assert validate_results(results) == []
    steps = payload.get("steps") if isinstance(payload, dict) else None
    count = len(steps) if isinstance(steps, list) else 0
    assert len(results) == count + 1


@given(_plans)
@settings(max_examples=80, deadline=None)
def test_a_valid_plan_is_never_blocked(payload: object) -> None:
    if not validate_payload(payload):
        assert execute(payload, Seams(_call))[-1]["task_status"] != "BLOCKED"


@given(_json)
@settings(max_examples=80, deadline=None)
def test_no_json_value_makes_the_results_validator_raise(value: object) -> None:
    validate_results(value)
    validate_results([value, {"step_id": "__meta__", "stats": value}])


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["chain", "wide", "backwards", "referring"])
def test_time_grows_with_the_plan_and_not_faster(shape: str) -> None:
    def seconds(count: int) -> float:
        plan = _plan(*_shape(shape, count))
        started = time.process_time()
        assert validate_payload(plan) == []
        assert execute(plan, Seams(_call))[-1]["ok"]
        return time.process_time() - started

    seconds(100)
    small = min(seconds(500) for _ in range(3))
    large = min(seconds(5_000) for _ in range(2))
    assert large < 40 * small  # ten times the steps; quadratic would be 100


def _shape(shape: str, count: int) -> list[dict[str, Any]]:
    ids = [f"s{k}" for k in range(count)]
    if shape == "chain":
        return [_step(ids[k], *ids[max(k - 1, 0) : k]) for k in range(count)]
    if shape == "backwards":
        return [_step(ids[k], *ids[k + 1 : k + 2]) for k in range(count)]
    if shape == "referring":
        return [_step(ids[k], x=f"${ids[0]}.output" if k else 1) for k in range(count)]
    return [_step(step_id) for step_id in ids]


class _Name(str, Enum):  # noqa: UP042 - not a StrEnum, whose str() is its value
    ECHO = "echo"
    FIRST = "step_1"


class _Count(IntEnum):
    TWO = 2


def test_a_subclass_of_a_json_type_is_a_value_of_that_type() -> None:
    step = {"step_id": _Name.FIRST, "title": _Name.ECHO, "tool": _Name.ECHO}
    args = OrderedDict({_Name.ECHO: [_Name.ECHO, _Count.TWO]})
    plan = OrderedDict(steps=[OrderedDict(step, args=args)])
    assert validate_payload(plan) == []
    row, meta = execute(plan, Seams(lambda _name, given, _context: given))
    assert meta["task_status"] == "COMPLETED"
    assert row["output"] == {"echo": ["echo", 2]}
    assert [(type(row[key]), row[key]) for key in ("step_id", "tool")] == [
        (str, "step_1"),
        (str, "echo"),
    ]
