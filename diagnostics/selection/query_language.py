"""The language of `q`: `model:haiku kind:truncated -env:dev corr:run-8 "quoted words"`.

A term is `key:value`. A leading `-` negates it, `key:-` matches null, `key:=value` the whole
value. Everything else is a word to search for. Any text can be parsed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from diagnostics.selection.fields import (
    EXACT_FIELDS,
    LONGEST_VALUE,
    NULLABLE,
    SHORTEST,
    UNKNOWN,
    field_named,
    keys_near,
    value_of,
)

T = TypeVar("T")

LONGEST_QUERY = 1_000
MOST_TERMS = 40
SPECIAL = frozenset('": \\')


@dataclass(frozen=True, slots=True)
class Term:
    """A condition on a field; a value of None matches null."""

    field: str
    value: str | None
    is_negated: bool = False
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class Word:
    """A text to search for in raw events."""

    text: str
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query; `faults` name what could not be parsed."""

    terms: tuple[Term, ...] = ()
    words: tuple[Word, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Token:
    key: str | None
    value: str
    is_negated: bool
    is_quoted: bool


def parse_query(text: str) -> Query:
    """Read a text; never raises."""
    terms: list[Term] = []
    words: list[Word] = []
    faults: list[str] = []
    storable = "".join(char if char.isprintable() else " " for char in text[:LONGEST_QUERY])
    for count, token in enumerate(_tokens(storable)):
        if count == MOST_TERMS:
            faults.append(f"at most {MOST_TERMS} terms")
            break
        part = _read(token)
        if isinstance(part, Term):
            terms.append(part)
        elif isinstance(part, Word):
            words.append(part)
        else:
            faults.append(part)
    return Query(_unique(terms), _unique(words), _unique(faults))


def write_query(query: Query) -> str:
    """Return a query as text; parsing it gives the same terms and words."""
    return " ".join([*map(write_term, query.terms), *map(write_word, query.words)])


def write_term(term: Term) -> str:
    key = SHORTEST.get(term.field, term.field)
    sign = "-" if term.is_negated else ""
    if term.value is None:
        return f"{sign}{key}:{UNKNOWN}"
    mark = "=" if term.is_exact and term.field not in EXACT_FIELDS else ""
    return f"{sign}{key}:{mark}{_quoted(term.value)}"


def write_word(word: Word) -> str:
    text = _quoted(word.text)
    needs_quotes = text.startswith("-") and not word.is_negated
    return ("-" if word.is_negated else "") + (f'"{text}"' if needs_quotes else text)


def _read(token: _Token) -> Term | Word | str:
    if token.key is None:
        return Word(token.value, token.is_negated)
    field = field_named(token.key)
    if field is None:
        return f"unknown key {token.key[:40]}{keys_near(token.key[:40])}"
    is_whole = token.value.startswith("=") and not token.is_quoted
    value = token.value.removeprefix("=") if is_whole else token.value
    if value == UNKNOWN and not token.is_quoted and not is_whole:
        if field not in NULLABLE:
            return f"{field} is never null"
        return Term(field, None, token.is_negated)
    if not value:
        return f"{token.key[:40]} needs a value"
    is_exact = is_whole or field in EXACT_FIELDS
    return Term(field, value_of(field, value), token.is_negated, is_exact)


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        token, place = _token_at(text, place)
        if token is not None:
            yield token


def _token_at(text: str, place: int) -> tuple[_Token | None, int]:
    is_negated = text[place] == "-" and text[place + 1 : place + 2] not in ("", " ")
    place += is_negated
    first, is_quoted, place = _part_at(text, place, stops=": ")
    if text[place : place + 1] != ":" or is_quoted or not first:
        if text[place : place + 1] == ":":
            # A colon with nothing before it, or behind quotes, is text.
            tail, _, place = _part_at(text, place, stops=" ")
            first += tail
        return (_Token(None, first, is_negated, is_quoted) if first else None), place
    value, mark, place = _value_at(text, place + 1)
    return _Token(first, value, is_negated, mark), place


def _value_at(text: str, place: int) -> tuple[str, bool, int]:
    """Read a value; `="two words"` is an exact, quoted one."""
    if text[place : place + 2] == '="':
        value, _, place = _part_at(text, place + 1, stops=" ")
        return f"={value}", False, place
    return _part_at(text, place, stops=" ")


def _part_at(text: str, place: int, stops: str) -> tuple[str, bool, int]:
    """Read up to a stop, or to the closing quote (else to the end)."""
    if text[place : place + 1] != '"':
        end = place
        while end < len(text) and text[end] not in stops:
            end += 1
        return text[place:end][:LONGEST_VALUE], False, end
    place += 1
    characters: list[str] = []
    while place < len(text) and text[place] != '"':
        place += text[place] == "\\" and place + 1 < len(text)
        characters.append(text[place])
        place += 1
    return "".join(characters)[:LONGEST_VALUE], True, place + 1


def _quoted(value: str) -> str:
    """Return a value, quoted if it would be parsed differently."""
    is_plain = not SPECIAL & set(value) and not value.startswith("=")
    if value and is_plain and value != UNKNOWN:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unique(values: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))
