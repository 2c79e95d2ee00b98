"""Known documents, damaged in every place: the value comes back, or nothing does."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from failsoft.parsing import Recovered, RefusedAnswer, recover
from failsoft.parsing.tracing import same
from tests.corpora import each_of

DOCUMENTS: list[Any] = [
    {"kind": "call_tool", "tool": "echo", "args": {"text": "hi there, you: ok", "n": 3}},
    {
        "steps": [
            {"step_id": "step_1", "title": "Fetch", "dependencies": [], "tool": "http_get"},
            {
                "step_id": "step_2",
                "dependencies": ["step_1", "step_0"],
                "tool": {"name": "echo", "args": {"a": [True, None, "x y"], "b": False}},
            },
        ]
    },
    {"a": [["p", "q"], ["r"]], "b": {"c": {"d": 1, "e": "x"}}, "f": "plain words"},
    [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    {"decision": "complete", "check_id": "abc-1", "reasons": ["one", "two words"]},
]
LAYOUTS: list[dict[str, Any]] = [{}, {"indent": 2}, {"separators": (",", ":")}]
TEXTS = [(document, json.dumps(document, **layout)) for document in DOCUMENTS for layout in LAYOUTS]
MARKS = frozenset('{}[],:"')


def quote_singly(text: str) -> str:
    return text.replace('"', "'")


def quote_smartly(text: str) -> str:
    return re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text)


def quote_back(text: str) -> str:
    return text.replace('"', "`")


def unquote_keys(text: str) -> str:
    return re.sub(r'"(\w+)":', r"\1:", text)


def drop_first_closing_key_quote(text: str) -> str:
    return re.sub(r'"(\w+)":', r'"\1:', text, count=1)


def drop_first_opening_key_quote(text: str) -> str:
    return re.sub(r'"(\w+)":', r'\1":', text, count=1)


def add_trailing_commas(text: str) -> str:
    return re.sub(r"(?<=[^\s{\[])(\s*)([}\]])", r",\1\2", text)


def comment_lines(text: str) -> str:
    return "# the plan\n" + re.sub(r"\n", " // a note\n", text)


def comment_commas(text: str) -> str:
    return re.sub(r'(?<=["\]}0-9e]),(?=\s*["{])', ", /* next */", text)


def write_python(text: str) -> str:
    return repr(json.loads(text))


def write_tuples(text: str) -> str:
    return re.sub(r"\[([^\[\]{}]+,[^\[\]{}]+)\]", r"(\1)", text)


def write_full_width(text: str) -> str:
    return re.sub(r'(?<="):', "\uff1a", text)


def write_no_break_spaces(text: str) -> str:
    return re.sub(r'(?<=")(: )', ":\u00a0", text)


def write_arrows(text: str) -> str:
    return re.sub(r'(?<="):', " =>", text)


def fence(text: str) -> str:
    return f"```json\n{text}\n```"


def fence_in_prose(text: str) -> str:
    return f"Here is the answer you asked for:\n\n```\n{text}\n```\n\nAnything else?"


def quote_lines(text: str) -> str:
    return re.sub(r"^", "> ", fence(text), flags=re.MULTILINE)


def think_first(text: str) -> str:
    return f'<think>Maybe {{"x": 1}}, it\'s not clear.</think>\n{text}'


def end_thinking(text: str) -> str:
    return f"First I look at it.\n</think>\n{text}"


def call_tool(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


def declare(text: str) -> str:
    return f"const answer = {text};"


def call_back(text: str) -> str:
    return f"callback({text});"


def encode(text: str) -> str:
    return json.dumps(text)


def encode_without_quotes(text: str) -> str:
    return json.dumps(text)[1:-1]


def begin_with_mark(text: str) -> str:
    return "\ufeff" + text


def close_twice(text: str) -> str:
    return text + "}"


def repeat(text: str) -> str:
    return f"{text}\n\n{text}"


DAMAGES: list[Callable[[str], str]] = [
    quote_singly, quote_smartly, quote_back, unquote_keys, drop_first_closing_key_quote,
    drop_first_opening_key_quote, add_trailing_commas, comment_lines, comment_commas,
    write_python, write_tuples, write_full_width, write_no_break_spaces, write_arrows, fence,
    fence_in_prose, quote_lines, think_first, end_thinking, call_tool, declare, call_back,
    encode, encode_without_quotes, begin_with_mark, close_twice, repeat,
]  # fmt: skip
INNER = [quote_singly, unquote_keys, add_trailing_commas, comment_lines, write_python]
OUTER = [fence, fence_in_prose, think_first, begin_with_mark]


@each_of([(*text, damage) for text in TEXTS for damage in DAMAGES])
def test_each_kind_of_damage_is_undone(
    document: Any, text: str, damage: Callable[[str], str]
) -> None:
    outcome = recover(damage(text))
    assert isinstance(outcome, Recovered), outcome
    assert same(outcome.value, document)


@each_of([(*text, inner, outer) for text in TEXTS for inner in INNER for outer in OUTER])
def test_two_kinds_of_damage_are_undone_together(
    document: Any, text: str, inner: Callable[[str], str], outer: Callable[[str], str]
) -> None:
    outcome = recover(outer(inner(text)))
    assert isinstance(outcome, Recovered), outcome
    assert same(outcome.value, document)


def marks_of(text: str) -> Iterator[int]:
    """Yield the places of punctuation and quotes, those inside strings left out."""
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', text):
        yield token.start()
        if token.end() - token.start() > 1:
            yield token.end() - 1


@each_of(TEXTS)
def test_one_mark_lost_never_gives_another_value(document: Any, text: str) -> None:
    for at in marks_of(text):
        outcome = recover(text[:at] + text[at + 1 :])
        assert isinstance(outcome, RefusedAnswer) or same(outcome.value, document), text[
            at - 9 : at + 9
        ]


@each_of(TEXTS)
def test_one_mark_doubled_never_gives_another_value(document: Any, text: str) -> None:
    for at in marks_of(text):
        outcome = recover(text[:at] + text[at] + text[at:])
        assert isinstance(outcome, RefusedAnswer) or same(outcome.value, document), text[
            at - 9 : at + 9
        ]


@each_of(TEXTS)
def test_a_closer_of_the_wrong_kind_never_gives_another_value(document: Any, text: str) -> None:
    for at in marks_of(text):
        if text[at] in "}]":
            wrong = "]" if text[at] == "}" else "}"
            outcome = recover(text[:at] + wrong + text[at + 1 :])
            assert isinstance(outcome, RefusedAnswer) or same(outcome.value, document)


@each_of(TEXTS)
def test_a_cut_text_is_refused_or_ends_where_only_the_last_brace_is_missing(
    document: Any, text: str
) -> None:
    for end in range(len(text)):
        outcome = recover(text[:end])
        if isinstance(outcome, RefusedAnswer):
            continue
        assert isinstance(document, dict)
        assert isinstance(outcome.value, dict)
        assert [item.kind for item in outcome.repairs] == ["missing_closer"]
        assert all(same(value, document[key]) for key, value in outcome.value.items())


@each_of(TEXTS)
def test_x_15_a_cut_text_is_refused_when_the_provider_says_so(document: Any, text: str) -> None:
    for end in range(len(text.rstrip())):
        outcome = recover(text[:end], "length")
        assert isinstance(outcome, RefusedAnswer)
        assert outcome.error_type == "truncated"
    whole = recover(text, "length")
    assert isinstance(whole, Recovered)
    assert same(whole.value, document)
