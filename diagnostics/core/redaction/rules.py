"""The rules: a data file, compiled once; one pass says which of them a text can hold."""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import re2

from diagnostics.core.redaction import wrapped
from diagnostics.core.redaction.cards import find_cards
from diagnostics.core.redaction.checks import (
    HASH,
    case_changes,
    has_digit,
    is_mixed,
    is_placeholder,
    is_random,
)
from diagnostics.core.redaction.named import find_named
from diagnostics.core.redaction.normalise import EASY_HINT, HINT
from diagnostics.core.redaction.searching import locator, make_options
from diagnostics.core.redaction.spoken import CHECKS, EACH, find_spoken

RULES_FILE = Path(__file__).with_name("rules.toml")
SET_MEMORY_BYTES = 128 << 20
TOKEN, SHAPE, CARD, WRAPPED = 1, 2, 3, 4
CLOSING = b"\"'`}]).,;>?! \r\n\t\\"
MANY = 16
# What goes on so long behind a beginning that is glued to a word.
GLUED = 20
LONG_HEAD = 5
# A name, or a sentence that names a secret, is told by so much of what follows.
REACH = 512
# Of so few characters two that are the same say nothing.
SHORT_TAIL = 8
MOST_WRAPPINGS = 2
# Comparing with more spans would cost more than it saves.
MOST_COVERED = 4
# No two names of secrets begin nearer to each other.
LEAST_STEP = 3
# What is longer and no token is not searched for another one inside.
LONGEST_SECOND_LOOK = 256
EMAIL = rb"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}"

Finding = tuple[int, int, str, int]
Find = Callable[[bytes, bytes], Iterator[tuple[int, int]]]
FindWrapped = Callable[
    [bytes, wrapped.Holds, Sequence[tuple[int, int]]], Iterator[tuple[int, int]]
]


@dataclass(frozen=True, slots=True)
class Rule:
    """One family of secrets: how to find it, and examples of what it masks and leaves."""

    kind: str
    trigger: str
    find: Find
    rank: int
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


class RuleSet:
    """Rules behind one filter; `find` is linear in the length of the text."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Build the filter over all triggers, escapes and long runs."""
        self.rules = tuple(rules)
        self.hint = len(self.rules)
        self.easy_hint = self.hint + 1
        self.run = self.easy_hint + 1
        self.listed = self.run + 1
        self._wrappings: dict[int, FindWrapped] = {
            self.run: wrapped.find_wrapped,
            self.listed: wrapped.find_listed,
        }
        self.known = self.listed + 1
        self.match = self.match_with(())

    def match_with(self, prefixes: Sequence[bytes]) -> Callable[[bytes], list[int]]:
        """Give the filter: which triggers a text holds; `known` when one of `prefixes`."""
        filter_set = re2.Set.SearchSet(make_options(SET_MEMORY_BYTES))
        for rule in self.rules:
            filter_set.Add(rule.trigger.encode())
        filter_set.Add(HINT)
        filter_set.Add(EASY_HINT)
        filter_set.Add(wrapped.TRIGGER)
        filter_set.Add(wrapped.LIST_TRIGGER)
        if prefixes:
            filter_set.Add(b"|".join(map(quote_bytes, sorted(set(prefixes)))))
        filter_set.Compile()
        # The wrapper of the binding costs as much as the pass over a short text.
        found: Callable[[bytes], list[int]] = filter_set._set.Match
        return found

    def collect(
        self, body: bytes, hits: Sequence[int], found: list[Finding], depth: int = 0
    ) -> None:
        """Add (start, end, kind, rank) of what to mask in an ASCII view."""
        low = body.lower()
        for index in sorted(hits):
            if index < self.hint:
                rule = self.rules[index]
                for start, end in rule.find(body, low):
                    if start < end:
                        found.append((start, end, rule.kind, rule.rank))
            elif index in self._wrappings and depth < MOST_WRAPPINGS and self.rules:
                self._collect_wrapped(self._wrappings[index], body, found, depth + 1)

    def _collect_wrapped(
        self, find: FindWrapped, body: bytes, found: list[Finding], depth: int
    ) -> None:
        def holds(text: bytes) -> bool:
            inside: list[Finding] = []
            readable = text.decode("latin-1").encode("ascii", "replace")
            self.collect(readable, self.match(readable), inside, depth)
            return bool(inside)

        covered = [(start, end) for start, end, _, _ in found[:MOST_COVERED]]
        for start, end in find(body, holds, covered):
            found.append((start, end, "encoded", WRAPPED))


def quote_bytes(form: bytes) -> bytes:
    """Quote any bytes for RE2."""
    return b"".join(rb"\x%02x" % byte for byte in form)


@cache
def load_rules() -> tuple[Rule, ...]:
    """Read the rules that ship with the product."""
    content = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
    alphabets = content["alphabets"]
    tokens = [_token_rule(table, alphabets) for table in content["token"]]
    return (*tokens, *(_shape_rule(table) for table in content["shape"]))


@cache
def load_rule_set(emails: bool = False) -> RuleSet:
    """Compile the rules that ship with the product, once; with e-mail addresses or not."""
    return RuleSet((*load_rules(), EMAIL_RULE) if emails else load_rules())


def count_families() -> int:
    """Count the token families of the data file, by their beginnings."""
    content = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
    return len({head for table in content["token"] for head in table["heads"]})


def _token_rule(table: dict[str, Any], alphabets: dict[str, str]) -> Rule:
    alphabet = alphabets[table["alphabet"]]
    weak, least, heads = table.get("weak", False), table["least"], table["heads"]
    triggers = [
        f"{re.escape(head)}[{alphabet}]{{{_first(head, least, weak)}}}"
        for head in heads
    ]
    # The longest beginning that fits is the beginning: no way back to a shorter one.
    ways = "|".join(map(re.escape, sorted(heads, key=len, reverse=True)))
    no = f"(?!{table['not']})" if "not" in table else ""
    tail = re.compile(f"((?>{ways})){no}([{alphabet}]+)".encode())
    may_follow = "before" in table
    check = EXTRA.get(table.get("check", ""))
    # A beginning that another one begins is found with it.
    firsts = [h for h in heads if not any(h != o and h.startswith(o) for o in heads)]
    anchors = tuple(head.encode() for head in firsts)

    def find(body: bytes, _low: bytes) -> Iterator[tuple[int, int]]:
        for anchor in anchors:
            at = body.find(anchor)
            while at >= 0:
                found = tail.match(body, at)
                after = at + len(anchor)
                if (
                    found
                    and (may_follow or _is_apart(body, at, found))
                    and _is_token(body, found, least, weak, check)
                ):
                    after = found.end()
                    yield _start(body, at, table), after - _dots(found)
                elif found and found.end() - at > LONGEST_SECOND_LOOK:
                    after = found.end()
                at = body.find(anchor, after)

    return Rule(
        table["kind"],
        "|".join(triggers),
        find,
        TOKEN,
        tuple(table["positive"]),
        tuple(table["negative"]),
    )


def _is_apart(body: bytes, at: int, found: re.Match[bytes]) -> bool:
    """Ask for no letter before, or for a beginning and a tail that no word has."""
    if not body[at - 1 : at].isalnum() or at == 0:
        return True
    head, tail = found[1], found[2]
    is_distinct = len(head) >= 4 and not head.isalnum()
    return is_distinct and len(tail) >= GLUED and is_random(tail)


def _start(body: bytes, at: int, table: dict[str, Any]) -> int:
    if "before" not in table:
        return at
    left = body[max(0, at - 64) : at]
    found = re.search(f"[{table['before']}]*$".encode(), left)
    return at - len(found.group()) if found else at


def _dots(found: re.Match[bytes]) -> int:
    """A full stop that ends a sentence is no part of a token."""
    return len(found[2]) - len(found[2].rstrip(b"."))


def _first(head: str, least: int, weak: bool) -> int:
    """How much of a token must be there to look closer."""
    if not weak or (len(head) >= 3 and head[-1] in "_-."):
        return 1 if len(head) >= 4 else min(least, 3)
    # What the end of the text cuts off is told by four characters.
    return min(least, 4 if len(head) >= 4 else 12)


def _is_token(
    body: bytes,
    found: re.Match[bytes],
    least: int,
    weak: bool,
    check: Callable[[bytes, bytes], bool] | None,
) -> bool:
    head, tail = found[1], found[2].rstrip(b".")
    if not tail or is_placeholder_tail(tail):
        return False
    if check is not None:
        return check(head, tail)
    if len(tail) >= least:
        if weak:
            return _is_made_up(tail) and not _is_slug(tail)
        return len(tail) >= MANY or not (tail.isalpha() and tail.islower())
    rest = body[found.end() : found.end() + 12]
    return rest.strip(CLOSING) == b"" and (
        not weak
        or is_mixed(tail)
        or not (tail[1:].islower() or (tail.isupper() and len(head) < LONG_HEAD))
    )


def _is_made_up(tail: bytes) -> bool:
    """Ask for letters with digits, many digits, or letters of changing case."""
    if has_digit(tail):
        return is_mixed(tail) or len(tail) >= 16
    return case_changes(tail) >= 3


def _is_slug(tail: bytes) -> bool:
    """Words, versions and dates with dashes between them."""
    return SLUG.fullmatch(tail) is not None


PIECE = rb"(?>[a-z]+|v?[0-9]{1,8}[a-z]?)?"
SLUG = re.compile(PIECE + rb"(?:[-_.]" + PIECE + rb")+")


def is_placeholder_tail(tail: bytes) -> bool:
    """Tell made-up examples: one letter over and over, words that say so."""
    if len(tail) < SHORT_TAIL:
        return (
            len(tail) >= 3
            and (len(set(tail)) == 1 or tail.isalpha())
            and is_placeholder(tail)
        )
    return is_placeholder(tail)


def _airtable(head: bytes, tail: bytes) -> bool:
    if head == b"pat":
        return re.match(rb"[A-Za-z0-9]{14}\.[a-f0-9]{8}", tail) is not None
    return re.fullmatch(rb"[A-Za-z0-9]{14}", tail) is not None and is_mixed(tail)


def _failsoft(_head: bytes, tail: bytes) -> bool:
    return re.match(rb"[0-9a-f]{8,}(?:_|$)", tail) is not None


def _identity(_head: bytes, tail: bytes) -> bool:
    return (
        len(tail) >= 30
        and is_mixed(tail)
        and not HASH.fullmatch(tail)
        and not _is_slug(tail)
    )


def _percent(_head: bytes, tail: bytes) -> bool:
    return b"%" in tail and is_mixed(tail)


EXTRA = {
    "percent": _percent,
    "airtable": _airtable,
    "failsoft": _failsoft,
    "identity": _identity,
}


def _shape_rule(table: dict[str, Any]) -> Rule:
    find: Find
    rank = SHAPE
    anchors = tuple(anchor.encode() for anchor in table["anchors"])
    if table.get("numbers"):
        rank, find = CARD, _find_cards
    elif table.get("named"):
        find = _at_triggers(table["trigger"], find_named)
    elif table.get("spoken"):
        find = _at_triggers(table["trigger"], find_spoken)
    elif table.get("each"):
        pattern = re.compile(table["pattern"].encode(), re.IGNORECASE)
        find = _each(anchors, pattern, EACH[table["each"]])
    else:
        find = _at_anchors(anchors, _matching(table["pattern"], table.get("check")))
    return Rule(
        table["kind"],
        table["trigger"],
        find,
        rank,
        tuple(table["positive"]),
        tuple(table["negative"]),
    )


def _find_cards(body: bytes, _low: bytes) -> Iterator[tuple[int, int]]:
    return find_cards(body)


def _matching(
    pattern: str, check: str | None
) -> Callable[[bytes, int], tuple[int, int] | None]:
    match = (
        re.compile(pattern.encode()).match
        if "(?i)" in pattern
        else re.compile(pattern.encode(), re.IGNORECASE).match
    )
    second = CHECKS[check] if check else None

    def at(body: bytes, place: int) -> tuple[int, int] | None:
        found = match(body, place)
        if found is None:
            return None
        return second(found) if second else found.span(1)

    return at


def _at_anchors(
    anchors: tuple[bytes, ...], read: Callable[[bytes, int], tuple[int, int] | None]
) -> Find:
    def find(body: bytes, low: bytes) -> Iterator[tuple[int, int]]:
        for anchor in anchors:
            at = low.find(anchor)
            while at >= 0:
                span = read(body, at)
                after = at + len(anchor)
                if span:
                    yield span
                    after = max(after, span[1])
                at = low.find(anchor, after)

    return find


def _at_triggers(
    trigger: str, read: Callable[[bytes, int], tuple[int, int] | None]
) -> Find:
    """Look where the trigger itself begins, which RE2 finds faster than many literals."""
    locate = locator(trigger.encode(), reach=REACH)

    def find(body: bytes, _low: bytes) -> Iterator[tuple[int, int]]:
        place = locate(body, 0)
        while place:
            span = read(body, place[0])
            at = place[0] + LEAST_STEP
            if span:
                yield span
                at = max(at, span[1])
            place = locate(body, at)

    return find


def _each(
    anchors: tuple[bytes, ...],
    pattern: re.Pattern[bytes],
    read: Callable[[re.Match[bytes]], Iterator[tuple[int, int]]],
) -> Find:
    def find(body: bytes, low: bytes) -> Iterator[tuple[int, int]]:
        for anchor in anchors:
            at = low.find(anchor)
            while at >= 0:
                found = pattern.match(body, at)
                after = found.end() if found else at + 1
                for span in read(found) if found else ():
                    yield span
                    after = max(after, span[1])
                at = low.find(anchor, after)

    return find


def _find_emails(body: bytes, _low: bytes) -> Iterator[tuple[int, int]]:
    for found in EMAILS.finditer(body):
        yield found.span()


EMAILS = re.compile(EMAIL)
EMAIL_RULE = Rule(
    "email", r"[A-Za-z0-9._%+-]@[A-Za-z0-9-]+\.[A-Za-z]{2}", _find_emails, CARD,
    ("write to {word:8}@{word:6}.test",), ("at @ a time", "@decorator.name"),
)  # fmt: skip
