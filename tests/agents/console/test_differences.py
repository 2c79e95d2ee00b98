"""What changed from one answer to the next."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.console.differences import (
    LINES_SHOWN,
    LONGEST_VALUE,
    MOST_CHANGES,
    DiffLine,
    ValueChange,
    difference,
)

PLAN = {"steps": [{"step_id": "step_1", "tool": "echo"}, {"step_id": "step_2"}]}


def changes(before: object, after: object) -> list[tuple[str, str]]:
    found = difference(json.dumps(before), json.dumps(after, indent=1))
    assert found.is_structural
    return [(change.kind, change.pointer) for change in found.changes]


@pytest.mark.parametrize(
    ("before", "after", "is_structural", "is_same"),
    [
        # The same text says so, whether it holds a value or not.
        ("not json", "not json", False, True),
        ('{"a": 1}', '{"a": 1}', False, True),
        # The same value in other words.
        ('{"a": 1}', 'Sure: {"a":1}', True, True),
        ("not json", "no json", False, False),
        # Lines that are too many to be compared are left out, not the same.
        ("a\n" * 500, "a\n" * 499 + "b\n", False, False),
    ],
)
def test_the_same_text_is_not_called_the_same_value(
    before: str, after: str, is_structural: bool, is_same: bool
) -> None:
    shown = difference(before, after)

    assert (shown.is_structural, shown.is_same) == (is_structural, is_same)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("changed", "/a")]),
        ({"a": 1}, {"a": True}, [("changed", "/a")]),  # 1 == True, yet not the same
        ({"a": 1}, {}, [("removed", "/a")]),
        ({}, {"a": 1}, [("added", "/a")]),
        ({"a/b": {"c~d": 1}}, {"a/b": {"c~d": 2}}, [("changed", "/a~1b/c~0d")]),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, [("changed", "/a/1"), ("added", "/a/2")]),
        ({"a": [1, 2]}, {"a": [1]}, [("removed", "/a/1")]),
        ({"a": {}}, {"a": []}, [("changed", "/a")]),
        # A step that was put in front is one change, not one of every step behind it.
        (PLAN, {"steps": [{"step_id": "step_0"}, *PLAN["steps"]]}, [("added", "/steps/0")]),
        (PLAN, {"steps": PLAN["steps"][::-1]}, []),
        (
            PLAN,
            {"steps": [{"step_id": "step_1", "tool": "http"}]},
            [("changed", "/steps/0/tool"), ("removed", "/steps/1")],
        ),
        # Items that share a name are told apart by place.
        ({"a": [{"id": "x"}, {"id": "x"}]}, {"a": [{"id": "x"}]}, [("removed", "/a/1")]),
        ({"a": [{"id": 1}]}, {"a": [{"id": 2}]}, [("changed", "/a/0/id")]),
        ({"a": [{"id": "x"}]}, {"a": []}, [("removed", "/a/0")]),
    ],
)
def test_values_are_compared_by_pointer(
    before: object, after: object, expected: list[tuple[str, str]]
) -> None:
    assert changes(before, after) == expected


def test_prose_around_a_value_is_no_change() -> None:
    plain = '{"a": 1}'
    assert difference(f"Sure!\n```json\n{plain}\n```", plain).is_same


def test_a_change_shows_both_values_as_json() -> None:
    found = difference('{"a": "x"}', '{"a": null}')
    assert found.changes == (ValueChange("/a", "changed", '"x"', "null"),)


def test_a_text_that_cannot_be_read_is_compared_line_by_line() -> None:
    found = difference('{"steps": [\n  {"tool": "re', '{"steps": [\n  {"tool": "refund"}]}')
    assert not found.is_structural
    assert found.lines == (
        DiffLine("same", '{"steps": ['),
        DiffLine("removed", '  {"tool": "re'),
        DiffLine("added", '  {"tool": "refund"}]}'),
    )


def test_lines_far_from_a_change_are_left_out() -> None:
    rows = [f"row {number}" for number in range(30)]
    found = difference("\n".join(rows), "\n".join([*rows[:20], "new", *rows[20:]]))
    assert [line.kind for line in found.lines] == ["gap", "same", "same", "added", "same", "same"]


def test_what_is_shown_is_bounded() -> None:
    many = {f"k{number}": number for number in range(MOST_CHANGES + 7)}
    found = difference("{}", json.dumps(many))
    assert (len(found.changes), found.left_out) == (MOST_CHANGES, 7)
    long = difference('{"a": 1}', json.dumps({"a": "x" * 1000}))
    assert len(long.changes[0].after or "") == LONGEST_VALUE
    lines = difference("no json", "\n".join(f"l{n} {'y' * 500}" for n in range(200)))
    assert len(lines.lines) == LINES_SHOWN
    assert lines.left_out > 0


def test_deep_values_are_compared_as_a_whole_at_the_end() -> None:
    def nested(leaf: int) -> str:
        return '{"a":' * 40 + str(leaf) + "}" * 40

    found = difference(nested(1), nested(2))
    assert [change.kind for change in found.changes] == ["changed"]


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_texts_can_be_compared(before: str, after: str) -> None:
    difference(before, after)
    same = difference(before, before)
    assert same.is_same
