"""The rules: a data file, compiled once; one pass returns the rules that may match a text."""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import re2

from failsoft.redaction import disguises
from failsoft.redaction.checks import find_cards, without_foreign
from failsoft.redaction.key_values import find_named
from failsoft.redaction.normalise import EASY_HINT, HINT
from failsoft.redaction.prose_secrets import find_in_prose
from failsoft.redaction.re2_search import Span, locator, make_options
from failsoft.redaction.shapes import CHECKS, EACH
from failsoft.redaction.tokens import Find, TokenFamily, token_finder, token_trigger

RULES_FILE = Path(__file__).with_name("rules.toml")
SET_MEMORY_BYTES = 128 << 20
# Overlapping findings get the kind of the lowest rank; "secret" is the least specific.
TOKEN, SHAPE, NAMED, CARD, WRAPPED = 1, 2, 3, 4, 5
GENERAL = "secret"
# The bytes after a name, or a sentence that names a secret, that are searched.
REACH = 512
MOST_WRAPPINGS = 2
# Comparing more spans would cost more than it saves.
MOST_COVERED = 4
# The least distance between the starts of two names.
LEAST_STEP = 3
# A pattern without a match.
NEVER = rb"[^\x00-\xff]"
EMAIL = rb"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}"

Finding = tuple[int, int, str, int]
FindWrapped = Callable[[bytes, disguises.Holds, Sequence[Span]], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One family of secrets and its finder."""

    kind: str
    trigger: str
    find: Find
    rank: int
    # Whether it is only searched for where no rule before it has found anything.
    is_rest: bool = False
    # Literal prefixes of tokens that may be split.
    heads: tuple[str, ...] = ()
    # The finder for names, where only whole tokens are secrets; None for no secrets.
    find_in_name: Find | None = None


class RuleSet:
    """Rules with a common filter; `collect` is linear in the length of the text."""

    def __init__(self, rules: Sequence[SecretRule]) -> None:
        self.rules = tuple(rules)
        self.hint = len(self.rules)
        self.easy_hint = self.hint + 1
        self.run = self.easy_hint + 1
        self.listed = self.run + 1
        self._wrappings: dict[int, FindWrapped] = {
            self.run: disguises.find_wrapped,
            self.listed: disguises.find_listed,
        }
        self.broken = self.listed + 1
        self.known = self.broken + 1
        heads = [head for rule in self.rules for head in rule.heads]
        self._broken_trigger = disguises.broken_trigger(heads).encode() if heads else NEVER
        self._find_broken = disguises.broken_finder(heads) if heads else None
        self.match = self.match_with(())

    @cached_property
    def for_names(self) -> "RuleSet":
        other = object.__new__(RuleSet)
        rules = (
            replace(rule, find=rule.find_in_name or (lambda *_: iter(()))) for rule in self.rules
        )
        other.__dict__ = {
            **self.__dict__,
            "rules": tuple(rules),
            "_wrappings": {},
            "_find_broken": None,
        }
        return other

    def match_with(self, prefixes: Sequence[bytes]) -> Callable[[bytes], list[int]]:
        """Return the filter, which lists the triggers in a text; `known` for any of `prefixes`."""
        filter_set = re2.Set.SearchSet(make_options(SET_MEMORY_BYTES))
        for rule in self.rules:
            filter_set.Add(rule.trigger.encode())
        filter_set.Add(HINT)
        filter_set.Add(EASY_HINT)
        filter_set.Add(disguises.TRIGGER)
        filter_set.Add(disguises.LIST_TRIGGER)
        filter_set.Add(self._broken_trigger)
        if prefixes:
            filter_set.Add(b"|".join(map(quote_bytes, sorted(set(prefixes)))))
        filter_set.Compile()
        # The wrapper of the binding costs as much as a pass over a short text.
        match: Callable[[bytes], list[int]] = filter_set._set.Match
        return match

    def collect(
        self, body: bytes, hits: Sequence[int], findings: list[Finding], depth: int = 0
    ) -> None:
        """Add (start, end, kind, rank) of what to mask in an ASCII view."""
        low = body.lower()
        for index in sorted(hits):
            if index < self.hint:
                rule = self.rules[index]
                # The rest is searched again after masking.
                if rule.is_rest and findings:
                    continue
                for start, end in rule.find(body, low):
                    if start < end:
                        findings.append((start, end, rule.kind, rule.rank))
            elif index in self._wrappings and depth < MOST_WRAPPINGS and self.rules:
                is_last = index == self.run and depth == 0
                if is_last and findings and _are_isolated(body, findings):
                    continue
                self._collect_wrapped(self._wrappings[index], body, findings, depth + 1)
            elif index == self.broken and self._find_broken:
                for span, kind, rank in self._find_broken(body, self._kind_of):
                    findings.append((*span, kind, rank))

    def _kind_of(self, joined: bytes, first: int) -> tuple[str, int] | None:
        """Return the kind and rank of a token that extends beyond its first piece."""
        inner_findings: list[Finding] = []
        self.for_names.collect(joined, self.match(joined), inner_findings)
        # Lines that a digest begins are no token of an unknown head.
        tokens = (finding for finding in inner_findings if finding[3] == TOKEN)
        kinds = ((kind, rank) for at, end, kind, rank in tokens if at < first < end)
        return next(kinds, None)

    def _collect_wrapped(
        self, find: FindWrapped, body: bytes, findings: list[Finding], depth: int
    ) -> None:
        def holds(text: bytes) -> bool:
            inner_findings: list[Finding] = []
            readable = text.decode("latin-1").encode("ascii", "replace")
            self.collect(readable, self.match(readable), inner_findings, depth)
            return bool(inner_findings)

        covered = [(start, end) for start, end, _, _ in findings[:MOST_COVERED]]
        for start, end in find(body, holds, covered):
            findings.append((start, end, "encoded", WRAPPED))


def _are_isolated(body: bytes, findings: Sequence[Finding]) -> bool:
    """Whether no finding is part of a longer run that may be encoded text."""
    return len(findings) <= MOST_COVERED and not any(
        body[start - 1 : start] in disguises.RUN_BYTES or body[end : end + 1] in disguises.RUN_BYTES
        for start, end, _, _ in findings
    )


def quote_bytes(form: bytes) -> bytes:
    return b"".join(rb"\x%02x" % byte for byte in form)


@cache
def load_rules() -> tuple[SecretRule, ...]:
    content = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
    alphabets = content["alphabets"]
    families = (
        TokenFamily(kind, tuple(heads.split()), alphabets[alphabet], least, **dict(*options))
        for kind, heads, alphabet, least, *options in content["tokens"]
    )
    return (*map(_token_rule, families), *map(_shape_rule, content["shape"]))


@cache
def load_rule_set(emails: bool = False) -> RuleSet:
    """Return the compiled built-in rules, cached; `emails` also masks e-mail addresses."""
    return RuleSet((*load_rules(), EMAIL_RULE) if emails else load_rules())


def _token_rule(family: TokenFamily) -> SecretRule:
    return SecretRule(
        family.kind,
        token_trigger(family),
        token_finder(family),
        TOKEN,
        heads=() if family.before else tuple(filter(_is_distinct, family.heads)),
        find_in_name=token_finder(family, whole=True),
    )


def _is_distinct(head: str) -> bool:
    """Whether a prefix is specific enough to search for split tokens."""
    return len(head) >= 4 or head[-1] in "_-." or head == "eyJ"


def _shape_rule(table: dict[str, Any]) -> SecretRule:
    find: Find
    rank = NAMED if table["kind"] == GENERAL else SHAPE
    anchors = tuple(anchor.encode() for anchor in table.get("anchors", ()))
    if table.get("numbers"):
        rank, find = CARD, find_cards
    elif table.get("named"):
        find = _at_triggers(table["trigger"], find_named)
    elif table.get("spoken"):
        find = _at_triggers(table["trigger"], find_in_prose)
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
        is_rest=table.get("rest", False),
        find_in_name=find if table.get("whole") else None,
    )


def _matching(pattern: str, check: str | None) -> Callable[[bytes, int], Span | None]:
    match_at = re.compile(pattern.encode(), re.IGNORECASE).match
    check_match = CHECKS[check] if check else None

    def read(body: bytes, offset: int) -> Span | None:
        match = match_at(body, offset)
        if match is None:
            return None
        span = check_match(match) if check_match else match.span(1)
        return without_foreign(body, *span) if span else None

    return read


def _at_anchors(anchors: tuple[bytes, ...], read: Callable[[bytes, int], Span | None]) -> Find:
    def find(body: bytes, low: bytes) -> Iterator[Span]:
        for anchor in anchors:
            at = low.find(anchor)
            while at >= 0:
                span = read(body, at)
                next_at = at + len(anchor)
                if span:
                    yield span
                    next_at = max(next_at, span[1])
                at = low.find(anchor, next_at)

    return find


def _at_triggers(trigger: str, read: Callable[[bytes, int], Span | None]) -> Find:
    """Return a finder that reads at each trigger, which RE2 finds faster than literals."""
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
                match = pattern.match(body, at)
                next_at = match.end() if match else at + 1
                for span in read(match) if match else ():
                    yield span
                    next_at = max(next_at, span[1])
                at = low.find(anchor, next_at)

    return find


EMAILS = re.compile(EMAIL)
EMAIL_RULE = SecretRule(
    "email",
    r"[A-Za-z0-9._%+-]@[A-Za-z0-9-]+\.[A-Za-z]{2}",
    lambda body, _low: (match.span() for match in EMAILS.finditer(body)),
    CARD,
)
