"""One kind of failure is one fingerprint, whoever shows it and wherever in a list."""

from typing import Any

import pytest

from diagnostics.store.fingerprints import (
    FailureKind,
    Regrouping,
    kind_of,
    normalise_pointer,
    preview,
)


def row(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "node": "plan",
        "schema": "PlanPayload",
        "kind": "parse_invalid",
        "parse_error_type": "schema_invalid",
        "reason": None,
        "payload": {"validation_errors": [], "tool": None, "attributes": {}},
    }
    payload = {
        **base["payload"],
        **{k: changes.pop(k) for k in list(changes) if k in base["payload"]},
    }
    return {**base, **changes, "payload": payload}


def fault(path: str, code: str | None = "missing", **more: Any) -> dict[str, Any]:
    return {"path": path, "code": code, "message": "m", **more}


def print_of(**changes: Any) -> Any:
    kind = kind_of(row(**changes))
    assert kind is not None
    return kind.fingerprint


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", ""),
        ("/steps/2/tool", "/steps/*/tool"),
        ("steps.2.tool", "/steps/*/tool"),
        ("$.steps[2].tool", "/steps/*/tool"),
        ("/results/step_12/ok", "/results/step_*/ok"),
        ("/by/0199a3c2-7e1c-7b5e-9a53-3f8f6c1d2e4a/x", "/by/*/x"),
        ("/" + "a" * 900, "/" + "a" * 399),
    ],
)
def test_what_only_numbers_things_is_a_star(pointer: str, expected: str) -> None:
    assert normalise_pointer(pointer) == expected


def test_message_position_index_and_version_make_no_difference() -> None:
    one = fault("/steps/2/tool", line=3, column=9)
    two = fault("/steps/7/tool", line=30, column=1) | {"message": "other words"}
    first = print_of(validation_errors=[one], provider="a", model="m")
    second = print_of(
        validation_errors=[two], provider="b", prompt_version="v2", schema_version="4"
    )
    assert first == second


def test_the_order_of_faults_makes_no_difference() -> None:
    faults = [fault("/b"), fault("/a", "enum"), fault("")]
    assert print_of(validation_errors=faults) == print_of(validation_errors=faults[::-1])


def test_node_schema_type_pointer_and_sort_of_fault_do() -> None:
    base = {"validation_errors": [fault("/a")]}
    prints = {
        print_of(**base),
        print_of(**base, node="next_step"),
        print_of(**base, schema="Other"),
        print_of(**base, parse_error_type="other"),
        print_of(validation_errors=[fault("/b")]),
        print_of(validation_errors=[fault("/a", "literal_error")]),
        print_of(validation_errors=[fault("/a", "int_parsing")]),
    }
    assert len(prints) == 7


def test_how_far_a_reader_came_in_broken_text_makes_no_difference() -> None:
    prints = {
        print_of(parse_error_type="not_json", validation_errors=[fault(path)])
        for path in ("", "/steps/1", "/x")
    }
    assert len(prints) == 1


def test_tools_fall_into_the_bucket_of_the_one_that_was_meant() -> None:
    def tool(name: str, nearest: str | None = None) -> Any:
        told = {"nearest": nearest} if nearest else {}
        return print_of(kind="unknown_tool", tool=name, attributes=told)

    assert tool("serch", "search") == tool("seach", "search")
    assert tool("Fetch_2") == tool("fetch_31")
    assert tool("serch") != tool("fetch")


@pytest.mark.parametrize(
    ("changes", "error_type"),
    [
        ({"kind": "provider_error", "call_error_type": "timeout"}, "timeout"),
        ({"kind": "provider_error"}, "provider_error"),
        ({"kind": "degraded", "reason": "circuit_open"}, "circuit_open"),
        ({"kind": "degraded", "reason": "plan_parse_failed"}, None),
        ({"kind": "degraded", "reason": "provider_failed"}, None),
        ({"kind": "succeeded"}, None),
    ],
)
def test_ends_that_follow_from_attempts_make_no_group(
    changes: dict[str, Any], error_type: str | None
) -> None:
    kind = kind_of(row(**changes))
    assert (kind and kind.error_type) == error_type


def test_a_fingerprint_is_the_same_on_any_machine() -> None:
    kind = kind_of(row(validation_errors=[fault("/steps/1/tool")]))
    assert kind is not None
    assert str(kind.fingerprint) == "304e6488-bd14-0232-3bc2-dadacdc68e48"


def test_letters_beyond_ascii_keep_their_fingerprint_too() -> None:
    kind = FailureKind("schr\u00e4g", None, "parse_invalid", "not_json", "/\u65e5")
    assert str(kind.fingerprint) == "45bea446-f704-237d-8619-a33e20002008"


def test_a_coarser_grouping_merges_and_a_finer_one_splits() -> None:
    kinds = [
        kind_of(row(validation_errors=[fault(path, code)]))
        for path, code in (("/a/x", "missing"), ("/a/y", "enum"), ("/b", "missing"))
    ]
    found = [(kind.fingerprint, kind) for kind in kinds if kind]
    coarse = Regrouping(ignores_detail=True, pointer_depth=1)
    merged = preview((old, coarse.apply(kind)) for old, kind in found)
    assert [len(groups) for groups in merged.merged.values()] == [2]
    assert (len(merged.split), merged.kept) == (0, 1)
    one = found[0][0]
    split = preview([(one, kind) for _, kind in found])
    assert len(split.split[one]) == 3
    assert (len(split.merged), split.kept) == (0, 0)


def test_keys_can_be_told_to_number_things() -> None:
    kind = kind_of(row(validation_errors=[fault("/by/alice/x")]))
    assert kind is not None
    assert Regrouping(wild_keys=["alice"]).apply(kind).pointer == "/by/*/x"
    assert Regrouping(ignores_schema=True).apply(kind).schema is None
