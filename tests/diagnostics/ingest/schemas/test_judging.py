"""One answer against a schema of an agent's own."""

import pytest

from diagnostics.ingest.schemas import OverBudgetError, checking, judge, read_schema
from failsoft.events import ParseErrorType

PLAN = read_schema(
    {
        "type": "object",
        "required": ["steps"],
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {"id": {"type": "string"}},
                    "additionalProperties": False,
                },
            }
        },
    }
)


def test_faults_are_placed_in_the_text_that_was_written() -> None:
    text = 'Here it is:\n```json\n{"steps": [{"id": "a"},\n  {"id": 7, "x": 1},]}\n```'
    verdict = judge(text, "stop", PLAN)
    assert verdict.error_type is ParseErrorType.SCHEMA_INVALID
    told = [(e.path, e.code, e.line, e.column) for e in verdict.errors]
    assert told == [("/steps/1/id", "type", 4, 10), ("/steps/1/x", "extra_forbidden", 4, 18)]
    assert {repair.kind for repair in verdict.repairs} >= {"fence", "trailing_comma"}


@pytest.mark.parametrize(
    ("text", "reason", "error_type"),
    [
        ('{"steps": []}', "stop", None),
        ('{"steps": [', "stop", ParseErrorType.TRUNCATED),
        ('{"steps": [{"id": "a"', "length", ParseErrorType.TRUNCATED),
        ("", None, ParseErrorType.EMPTY_OUTPUT),
        ("I'm sorry, I cannot do that.", None, ParseErrorType.REFUSAL),
        ("no plan today", None, ParseErrorType.NOT_JSON),
        ("[]", None, ParseErrorType.SCHEMA_INVALID),
        # Values are taken as they are: nothing is coerced.
        ('{"steps": "one"}', None, ParseErrorType.SCHEMA_INVALID),
    ],
)
def test_an_answer_is_read_by_the_recovering_parser_then_checked(
    text: str, reason: str | None, error_type: ParseErrorType | None
) -> None:
    verdict = judge(text, reason, PLAN)
    assert verdict.error_type is error_type
    assert bool(verdict.errors) is (error_type is not None)


def test_without_a_schema_any_object_is_right() -> None:
    assert judge('{"a": 1}', None, None).error_type is None
    assert judge("plain text", None, None).error_type is ParseErrorType.NOT_JSON


def test_at_most_a_hundred_faults_are_kept() -> None:
    text = '{"steps": [' + ", ".join(["1"] * 500) + "]}"
    assert len(judge(text, None, PLAN).errors) == 100


def test_what_takes_too_long_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_STEPS", 3)
    with pytest.raises(OverBudgetError):
        judge('{"steps": [{"id": "a"}]}', None, PLAN)
