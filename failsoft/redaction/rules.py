"""The rules: a data file, compiled once; one pass says which of them a text can hold."""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import re2

from failsoft.redaction import encoded, token_pieces
from failsoft.redaction.checks import find_cards, without_foreign
from failsoft.redaction.key_values import find_named
from failsoft.redaction.normalise import EASY_HINT, HINT
from failsoft.redaction.prose_secrets import find_spoken
from failsoft.redaction.re2_search import Span, locator, make_options
from failsoft.redaction.shapes import CHECKS, EACH
from failsoft.redaction.tokens import Find, token_finder, token_trigger

RULES_FILE = Path(__file__).with_name("rules.toml")
SET_MEMORY_BYTES = 128 << 20
# Of what overlaps, the kind of the lowest is named: "secret" says least.
TOKEN, SHAPE, NAMED, CARD, WRAPPED = 1, 2, 3, 4, 5
GENERAL = "secret"
# A name, or a sentence that names a secret, is told by so much of what follows.
REACH = 512
MOST_WRAPPINGS = 2
# Comparing with more spans would cost more than it saves.
MOST_COVERED = 4
# No two names of secrets begin nearer to each other.
LEAST_STEP = 3
# A pattern that nothing matches.
NEVER = rb"[^\x00-\xff]"
EMAIL = rb"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}"

Finding = tuple[int, int, str, int]
FindWrapped = Callable[[bytes, encoded.Holds, Sequence[Span]], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One family of secrets: how to find it, and examples of what it masks and leaves."""

    kind: str
    trigger: str
    find: Find
    rank: int
    # Literal beginnings of tokens that may come in pieces.
    heads: tuple[str, ...] = ()
    # The same for names, where only what is whole is a secret; None where nothing is.
    find_in_name: Find | None = None
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


class RuleSet:
    """Rules behind one filter; `find` is linear in the length of the text."""

    def __init__(self, rules: Sequence[SecretRule]) -> None:
        """Build the filter over all triggers, escapes and long runs."""
        self.rules = tuple(rules)
        self.hint = len(self.rules)
        self.easy_hint = self.hint + 1
        self.run = self.easy_hint + 1
        self.listed = self.run + 1
        self._wrappings: dict[int, FindWrapped] = {
            self.run: encoded.find_wrapped,
            self.listed: encoded.find_listed,
        }
        self.broken = self.listed + 1
        self.known = self.broken + 1
        heads = [head for rule in self.rules for head in rule.heads]
        self._broken_trigger = token_pieces.trigger(heads).encode() if heads else NEVER
        self._find_broken = token_pieces.broken_finder(heads) if heads else None
        self.match = self.match_with(())

    @cached_property
    def for_names(self) -> "RuleSet":
        """The same rules as they apply to names, behind the same filter."""
        other = object.__new__(RuleSet)
        rules = (replace(rule, find=rule.find_in_name or _find_none) for rule in self.rules)
        other.__dict__ = {
            **self.__dict__,
            "rules": tuple(rules),
            "_wrappings": {},
            "_find_broken": None,
        }
        return other

    def match_with(self, prefixes: Sequence[bytes]) -> Callable[[bytes], list[int]]:
        """Return the filter: which triggers a text holds; `known` when one of `prefixes`."""
        filter_set = re2.Set.SearchSet(make_options(SET_MEMORY_BYTES))
        for rule in self.rules:
            filter_set.Add(rule.trigger.encode())
        filter_set.Add(HINT)
        filter_set.Add(EASY_HINT)
        filter_set.Add(encoded.TRIGGER)
        filter_set.Add(encoded.LIST_TRIGGER)
        filter_set.Add(self._broken_trigger)
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
                # What is left when this is masked is looked at again.
                is_last = index == self.run and depth == 0
                if is_last and found and _stand_apart(body, found):
                    continue
                self._collect_wrapped(self._wrappings[index], body, found, depth + 1)
            elif index == self.broken and self._find_broken:
                for span, kind, rank in self._find_broken(body, self._kind_of):
                    found.append((*span, kind, rank))

    def _kind_of(self, joined: bytes, first: int) -> tuple[str, int] | None:
        """Return kind and rank of a whole token that reaches beyond its first piece."""
        inside: list[Finding] = []
        self.for_names.collect(joined, self.match(joined), inside)
        kinds = ((kind, rank) for at, end, kind, rank in inside if at < first < end)
        return next(kinds, None)

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


def _stand_apart(body: bytes, found: Sequence[Finding]) -> bool:
    """Say that no run that may be an encoded text goes on beyond what was found."""
    return len(found) <= MOST_COVERED and not any(
        body[start - 1 : start] in encoded.RUN_BYTES or body[end : end + 1] in encoded.RUN_BYTES
        for start, end, _, _ in found
    )


def quote_bytes(form: bytes) -> bytes:
    """Quote any bytes for RE2."""
    return b"".join(rb"\x%02x" % byte for byte in form)


@cache
def load_rules() -> tuple[SecretRule, ...]:
    """Read the rules that ship with the product."""
    content = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
    alphabets = content["alphabets"]
    tokens = [_token_rule(table, alphabets) for table in content["token"]]
    return (*tokens, *(_shape_rule(table) for table in content["shape"]))


@cache
def load_rule_set(emails: bool = False) -> RuleSet:
    """Compile the rules that ship with the product, once; with e-mail addresses or not."""
    return RuleSet((*load_rules(), EMAIL_RULE) if emails else load_rules())


def _token_rule(table: dict[str, Any], alphabets: dict[str, str]) -> SecretRule:
    return SecretRule(
        table["kind"],
        token_trigger(table, alphabets),
        token_finder(table, alphabets),
        TOKEN,
        () if "before" in table else tuple(filter(_is_distinct, table["heads"])),
        token_finder(table, alphabets, whole=True),
        tuple(table["positive"]),
        tuple(table["negative"]),
    )


def _is_distinct(head: str) -> bool:
    """Whether a beginning is looked for at the end of a line or a literal."""
    return len(head) >= 4 or head[-1] in "_-." or head == "eyJ"


def _shape_rule(table: dict[str, Any]) -> SecretRule:
    find: Find
    rank = NAMED if table["kind"] == GENERAL else SHAPE
    anchors = tuple(anchor.encode() for anchor in table["anchors"])
    if table.get("numbers"):
        rank, find = CARD, find_cards
    elif table.get("named"):
        find = _at_triggers(table["trigger"], find_named)
    elif table.get("spoken"):
        find = _at_triggers(table["trigger"], find_spoken)
    elif table.get("each"):
        pattern = re.compile(table["pattern"].encode(), re.IGNORECASE)
        find = _each(anchors, pattern, EACH[table["each"]])
    else:
        read = _matching(table["pattern"], table.get("check"))
        find = _at_anchors(anchors, read) if anchors else _at_triggers(table["trigger"], read)
    return SecretRule(
        table["kind"],
        table["trigger"],
        find,
        rank,
        (),
        find if table.get("whole") else None,
        tuple(table["positive"]),
        tuple(table["negative"]),
    )


def _find_none(_body: bytes, _low: bytes) -> Iterator[Span]:
    return iter(())


def _matching(pattern: str, check: str | None) -> Callable[[bytes, int], Span | None]:
    match = re.compile(pattern.encode(), re.IGNORECASE).match
    second = CHECKS[check] if check else None

    def at(body: bytes, place: int) -> Span | None:
        found = match(body, place)
        if found is None:
            return None
        span = second(found) if second else found.span(1)
        return without_foreign(body, *span) if span else None

    return at


def _at_anchors(anchors: tuple[bytes, ...], read: Callable[[bytes, int], Span | None]) -> Find:
    def find(body: bytes, low: bytes) -> Iterator[Span]:
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


def _at_triggers(trigger: str, read: Callable[[bytes, int], Span | None]) -> Find:
    """Look where the trigger itself begins, which RE2 finds faster than many literals."""
    locate = locator(trigger.encode(), reach=REACH)

    def find(body: bytes, _low: bytes) -> Iterator[Span]:
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
    read: Callable[[re.Match[bytes]], Iterator[Span]],
) -> Find:
    def find(body: bytes, low: bytes) -> Iterator[Span]:
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


def _find_emails(body: bytes, _low: bytes) -> Iterator[Span]:
    return (found.span() for found in EMAILS.finditer(body))


EMAILS = re.compile(EMAIL)
EMAIL_RULE = SecretRule(
    "email", r"[A-Za-z0-9._%+-]@[A-Za-z0-9-]+\.[A-Za-z]{2}", _find_emails, CARD, (), None,
    ("write to {word:8}@{word:6}.test",), ("at @ a time", "@decorator.name"),
)  # fmt: skip
