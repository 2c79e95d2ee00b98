"""The language of `q`: any text is read, and what is read can be written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.selection.query_language import Query, Term, Word, parse_query, write_query

PIECES = st.sampled_from(
    ["model", "env", ":", "-", '"', "=", " ", "\\", "corr", "a", "kind", "\0", "é"]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=30).map("".join))


def test_the_documented_example_is_read() -> None:
    found = parse_query('model:haiku kind:truncated -env:dev corr:run-8 "two words"')
    assert found == Query(
        (
            Term("model", "haiku", is_exact=False),
            Term("kind", "truncated"),
            Term("environment", "dev", is_negated=True, is_exact=False),
            Term("correlation_id", "run-8", is_exact=False),
        ),
        (Word("two words"),),
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("model:-", Term("model", None)),
        ("-model:-", Term("model", None, is_negated=True)),
        ('model:"-"', Term("model", "-", is_exact=False)),
        ("model:=gpt", Term("model", "gpt")),
        ('model:="two words"', Term("model", "two words")),
        ('MODEL:"a \\"b\\" c"', Term("model", 'a "b" c', is_exact=False)),
        ("model:a:b", Term("model", "a:b", is_exact=False)),
        ("prompt:v5", Term("prompt_version", "v5", is_exact=False)),
        ("attempt:2", Term("attempt", "2")),
    ],
)
def test_a_term_is_read(text: str, wanted: Term) -> None:
    assert parse_query(text) == Query((wanted,))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("word", Word("word")),
        ("-word", Word("word", is_negated=True)),
        ('-"not this"', Word("not this", is_negated=True)),
        ('"open end', Word("open end")),
        ('"model:haiku"', Word("model:haiku")),
        ("-", Word("-")),
        (":x", Word(":x")),
    ],
)
def test_a_word_is_read(text: str, wanted: Word) -> None:
    assert parse_query(text) == Query((), (wanted,))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("colour:red", "unknown key colour"),
        ("modle:haiku", "unknown key modle; did you mean model?"),
        ("model:", "model needs a value"),
        ("node:-", "node is never null"),
        (" ".join(f"w{n}" for n in range(50)), "at most 40 terms"),
    ],
)
def test_what_is_not_understood_is_named(text: str, fault: str) -> None:
    assert parse_query(text).faults == (fault,)


@given(TEXTS)
def test_any_text_is_read_and_written_back(text: str) -> None:
    query = parse_query(text)
    again = parse_query(write_query(query))
    assert (again.terms, again.words, again.faults) == (query.terms, query.words, ())
