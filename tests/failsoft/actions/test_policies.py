"""What each field of an entry forgives, and what it does not."""

from typing import Any

import pytest

from failsoft.actions import ParseResult, decode_tool_calls
from failsoft.actions.entries import CADENCES, CATEGORIES, ENTRIES, STATUSES
from tests.failsoft.actions.calls import complete, create, update


class _Absent:
    """Stands for a key that is not there; told apart by name in every process."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


def _decode(*calls: object) -> ParseResult:
    return decode_tool_calls(list(calls), ENTRIES)


def _created(**fields: object) -> ParseResult:
    entry = {"content": "milk", "category": "todo", **fields}
    return _decode(create({k: v for k, v in entry.items() if v is not ABSENT}))


def _taken(result: ParseResult, field: str) -> Any:
    assert result.failures == ()
    return result.actions[0].flat()[field]


def _leniencies(result: ParseResult) -> list[tuple[str, str]]:
    return [(item.path, item.kind) for item in result.coerced]


@pytest.mark.parametrize("category", ["grocery", "TODO", "", "Todo", " todo", "nte"], ids=repr)
def test_s4_8_and_s4_31_and_s4_39_an_unknown_category_becomes_note(category: str) -> None:
    result = _created(category=category)
    assert _taken(result, "category") == "note"
    assert _leniencies(result) == [("entries[0].category", "fallback")]


@pytest.mark.parametrize("category", [ABSENT, None, 5, True, ["todo"], {}], ids=repr)
def test_s4_8_a_missing_category_and_one_of_a_wrong_type_become_note(category: object) -> None:
    result = _created(category=category)
    assert _taken(result, "category") == "note"
    assert _leniencies(result) == [("entries[0].category", "fallback")]


@pytest.mark.parametrize("category", CATEGORIES)
def test_s4_9_a_known_category_is_kept(category: str) -> None:
    result = _created(category=category)
    assert _taken(result, "category") == category
    assert result.coerced == ()


@pytest.mark.parametrize("category", ["nte", "lists", "ideas", "habbit"], ids=repr)
def test_s4_10_and_s4_36_no_nearest_category_is_sought(category: str) -> None:
    assert _taken(_created(category=category), "category") == "note"


def test_s4_8_an_unknown_category_in_an_update_becomes_note() -> None:
    result = _decode(update({"category": "grocery"}))
    assert _taken(result, "category") == "note"
    assert _leniencies(result) == [("updates[0].fields.category", "fallback")]


@pytest.mark.parametrize("fields", [{}, {"category": None}], ids=repr)
def test_an_update_without_a_category_leaves_it_alone(fields: dict[str, None]) -> None:
    result = _decode(update(fields))
    assert _taken(result, "category") is None
    assert result.coerced == ()


@pytest.mark.parametrize("cadence", ["biweekly", "Daily", "", 5, True, ["daily"], {}], ids=repr)
def test_s4_11_and_s4_33_an_unknown_cadence_becomes_null_in_create_and_update(
    cadence: object,
) -> None:
    created, updated = _created(cadence=cadence), _decode(update({"cadence": cadence}))
    assert _taken(created, "cadence") is None
    assert _taken(updated, "cadence") is None
    assert _leniencies(created) == [("entries[0].cadence", "dropped_to_null")]
    assert _leniencies(updated) == [("updates[0].fields.cadence", "dropped_to_null")]


@pytest.mark.parametrize("cadence", CADENCES)
def test_s4_12_a_known_cadence_is_kept(cadence: str) -> None:
    assert _taken(_created(cadence=cadence), "cadence") == cadence
    assert _taken(_decode(update({"cadence": cadence})), "cadence") == cadence


@pytest.mark.parametrize("cadence", [ABSENT, None], ids=repr)
def test_s4_12_a_missing_cadence_is_null_and_no_leniency(cadence: object) -> None:
    result = _created(cadence=cadence)
    assert _taken(result, "cadence") is None
    assert result.coerced == ()


@pytest.mark.parametrize("status", ["frozen", "Active", "", 1, True, ["active"]], ids=repr)
def test_s4_13_an_unknown_status_fails_its_call_and_no_other(status: object) -> None:
    result = _decode(update({"status": status}), complete("abc"))
    assert [action.type for action in result.actions] == ["complete"]
    assert [failure.path for failure in result.failures] == ["updates[0].fields.status"]


@pytest.mark.parametrize("status", STATUSES)
def test_s4_13_a_known_status_is_kept(status: str) -> None:
    assert _taken(_decode(update({"status": status})), "status") == status


PRIORITIES = [(0, 1), (-1, 1), (99, 5), (5, 5), (1, 1), (None, None), (3, 3)]
LENIENT = [("3", 3), (3.0, 3), ("99", 5), (" 2 ", 2), ("+4", 4), ("3.0", 3), (-7.0, 1)]


@pytest.mark.parametrize(("priority", "taken"), [*PRIORITIES, *LENIENT], ids=repr)
def test_s4_14_and_s4_32_and_s4_40_priority_is_moved_into_1_to_5_on_create(
    priority: object, taken: int | None
) -> None:
    assert _taken(_created(priority=priority), "priority") == taken


@pytest.mark.parametrize(("priority", "taken"), [*PRIORITIES, *LENIENT], ids=repr)
def test_s4_15_and_s4_32_priority_is_moved_into_1_to_5_on_update(
    priority: object, taken: int | None
) -> None:
    assert _taken(_decode(update({"priority": priority})), "priority") == taken


@pytest.mark.parametrize(
    ("priority", "kinds"),
    [
        (3, []),
        (99, ["clamped"]),
        ("3", ["numeric_string"]),
        ("99", ["numeric_string", "clamped"]),
        (3.0, ["integral_float"]),
        ("9" * 5_000, ["numeric_string", "clamped"]),
    ],
)
def test_every_leniency_towards_a_priority_is_recorded(priority: object, kinds: list[str]) -> None:
    assert [item.kind for item in _created(priority=priority).coerced] == kinds


@pytest.mark.parametrize(
    "priority", [2.5, True, False, "high", "", "2.5", "1e3", [3], {}, "٣"], ids=repr
)
def test_a_priority_that_is_no_whole_number_fails_the_call(priority: object) -> None:
    result = _created(priority=priority)
    assert result.actions == ()
    assert [failure.path for failure in result.failures] == ["entries[0].priority"]


@pytest.mark.parametrize("content", [ABSENT, None, 5, True, ["a"], {"text": "a"}], ids=repr)
def test_content_of_a_wrong_type_fails_the_call(content: object) -> None:
    result = _created(content=content)
    assert result.actions == ()
    assert [failure.path for failure in result.failures] == ["entries[0].content"]


@pytest.mark.parametrize("field", ["summary", "source_text"])
def test_other_text_of_a_wrong_type_fails_the_call(field: str) -> None:
    result = _created(**{field: 5})
    assert [failure.path for failure in result.failures] == [f"entries[0].{field}"]


def test_text_beyond_its_bound_fails_the_call() -> None:
    assert _created(content="x" * 50_000).failures == ()
    assert len(_created(content="x" * 50_001).failures) == 1


def test_s4_16_garbage_date_text_is_kept_and_does_not_fail_the_action() -> None:
    result = _created(due_date="blursday")
    assert _taken(result, "due_date") == "blursday"
    assert result.coerced == ()


@pytest.mark.parametrize("due", [20261224, ["friday"], "x" * 201], ids=repr)
def test_s4_16_a_date_that_is_no_text_is_dropped_on_record(due: object) -> None:
    result = _created(due_date=due)
    assert _taken(result, "due_date") is None
    assert _leniencies(result) == [("entries[0].due_date", "dropped_to_null")]


def test_an_integer_id_is_taken_on_record() -> None:
    result = _decode(complete(123))
    assert _taken(result, "id") == "123"
    assert _leniencies(result) == [("entries[0].id", "integer_id")]


@pytest.mark.parametrize(
    "entry", [None, "", "  ", True, -1, 10**18, 1.5, ["a"], "a" * 101], ids=repr
)
def test_an_id_that_names_nothing_fails_the_call(entry: object) -> None:
    result = _decode(complete(entry))
    assert [failure.path for failure in result.failures] == ["entries[0].id"]


@pytest.mark.parametrize("fields", [None, [], "status", 5], ids=repr)
def test_an_update_without_an_object_of_fields_fails(fields: object) -> None:
    (failure,) = _decode(update(fields)).failures
    assert failure.path == "updates[0].fields"


@pytest.mark.parametrize("entry", [None, "milk", 5, ["milk"]], ids=repr)
def test_an_entry_that_is_no_object_fails_the_call(entry: object) -> None:
    (failure,) = _decode(create(entry)).failures
    assert failure.path == "entries[0]"


def test_unknown_keys_are_dropped_and_named() -> None:
    result = _created(colour="red", **{"an odd/key": 1})
    assert "colour" not in result.actions[0].flat()
    assert _leniencies(result) == [
        ("entries[0].colour", "unknown_key_dropped"),
        ("entries[0]['an odd/key']", "unknown_key_dropped"),
    ]
    assert result.coerced[1].pointer.endswith("/entries/0/an odd~1key")


def test_the_schema_offered_to_a_model_says_what_the_policies_take() -> None:
    create_tool, update_tool = ENTRIES.tools[:2]
    entry = create_tool.schema()["properties"]["entries"]["items"]
    assert entry["required"] == ["content", "category"]
    assert entry["properties"]["category"]["enum"] == list(CATEGORIES)
    change = update_tool.schema()["properties"]["updates"]["items"]
    assert change["required"] == ["id", "fields"]
    assert change["properties"]["fields"]["properties"]["priority"]["maximum"] == 5
