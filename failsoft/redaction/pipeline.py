"""The order that never changes: bound, normalise, known values, rules, truncate."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from failsoft.redaction.checks import FILLER
from failsoft.redaction.known_values import KnownValues
from failsoft.redaction.normalise import View, decode, fold, without_backslashes
from failsoft.redaction.preview import MARKER, cut
from failsoft.redaction.re2_search import OwnRules, Span
from failsoft.redaction.rules import RuleSet, SecretRule

MARK = "[REDACTED:"
FLAT_MARK = MARK.encode()
# start, end, kind, rank: of findings that overlap, the kind of the lowest rank is named
Finding = tuple[int, int, str, int]


def merge(findings: Sequence[Finding], markers: list[Span]) -> list[tuple[int, int, str]]:
    """Join what overlaps and leave alone what is a marker already, sorted by place."""
    if len(findings) == 1 and not markers:
        return [findings[0][:3]]
    starts = [opening for opening, _ in markers]
    around = (_around(finding, markers, starts) for finding in findings)
    merged: list[Finding] = []
    for start, end, kind, rank in sorted(filter(None, around), key=_place):
        if merged and start < merged[-1][1]:
            first, last, old, best = merged[-1]
            merged[-1] = (first, max(end, last), *((kind, rank) if rank < best else (old, best)))
        else:
            merged.append((start, end, kind, rank))
    return [(start, end, kind) for start, end, kind, _ in merged]


def _place(finding: Finding) -> tuple[int, int, int]:
    return finding[0], -finding[1], finding[3]


def _around(finding: Finding, markers: list[Span], starts: list[int]) -> Finding | None:
    """Widen a finding to hold whole markers; None when it lies within one."""
    if not markers:
        return finding
    start, end, kind, rank = finding
    left = bisect_right(starts, start) - 1
    if left >= 0 and start < markers[left][1]:
        if end <= markers[left][1]:
            return None
        start = markers[left][0]
    right = bisect_left(starts, end) - 1
    if right >= 0:
        end = max(end, markers[right][1])
    return start, end, kind, rank


def mask_flat(flat: bytes, spans: list[tuple[int, int, str]]) -> tuple[bytes, list[Span]]:
    """Return what `mask` makes of a text without markers, folded and filled, and its markers."""
    parts: list[bytes] = []
    markers: list[Span] = []
    seen = size = 0
    for start, end, kind in spans:
        size += start - seen
        width = len(MARK) + len(kind) + 1
        parts += (flat[seen:start], FILLER * width)
        markers.append((size, size + width))
        size += width
        seen = end
    return b"".join((*parts, flat[seen:])), markers


def mask(text: str, spans: list[tuple[int, int, str]]) -> str:
    """Replace each span by its marker."""
    parts: list[str] = []
    seen = 0
    for start, end, kind in spans:
        parts += (text[seen:start], f"{MARK}{kind}]")
        seen = end
    return "".join((*parts, text[seen:]))


FAILED = "[REDACTION_FAILED]"
INPUT_CHARACTERS = 262_144
# Of a text that is cut anyway, so much more than its limit is looked at.
AHEAD = 8
# What a cut at the input bound can leave of a token; dropped from the end.
TAIL_CHARACTERS = 4_096
# Longer ones are bounded first.
QUICK_CHARACTERS = 8_192
ROUNDS = 6
KNOWN = 0
KIND = re.compile(r"[a-z0-9_-]{1,40}")
# What is no sentence, setting or address; several have commas between them.
NAME_PART = r"[\w.:/@+~#()\[\]-]{1,200}"
NAME = re.compile(rf"(?!.*://){NAME_PART}(?:,{NAME_PART}){{0,15}}")


class Redacted(NamedTuple):
    """A text fit to be kept, and the kinds of what was masked in it, sorted."""

    text: str
    found: tuple[str, ...] = ()


class Redact(Protocol):
    """Masks a text and cuts it; of a name, only what is a secret for sure is masked."""

    def __call__(self, text: str, limit: int | None, *, is_name: bool = False) -> Redacted: ...


class Redactor:
    """Masks secrets in text: idempotent, linear, never raises, immutable."""

    def __init__(
        self,
        rules: RuleSet | Sequence[SecretRule],
        known: Mapping[str, str],
        *,
        passing: Mapping[str, str] | None = None,
        own: OwnRules | None = None,
        is_lasting: bool = False,
    ) -> None:
        """Take rules and `known`, value to kind; WeakSecretError for a short value.

        `passing` values are looked for only where something looks like a token. `own`
        are the rules of a project. A redactor that `is_lasting` spends milliseconds on
        being built to save microseconds on each text.
        """
        self._rules = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        for kind in (*known.values(), *(passing or {}).values()):
            if KIND.fullmatch(kind) is None:
                raise ValueError("a kind is 1 to 40 of a-z, 0-9, _ and -")
        self._known = KnownValues(known)
        self._passing = KnownValues(passing or {})
        self._own = own
        joined = is_lasting and bool(self._known)
        self._match = self._rules.match_with(self._known.prefixes) if joined else self._rules.match
        self._always_known = bool(self._known) and not joined
        self._is_quick = not self._always_known and own is None

    def with_passing(self, passing: Mapping[str, str]) -> "Redactor":
        """Return a redactor that masks these passing values instead."""
        return self._changed(_passing=KnownValues(passing))

    def with_own(self, own: OwnRules | None) -> "Redactor":
        """Return a redactor that masks what a project's own rules find, too."""
        return self._changed(_own=own, _is_quick=own is None and not self._always_known)

    def for_name(self, name: str) -> "Redactor":
        """Return a redactor that masks known values, own rules and whole tokens in a name.

        A text that is none, but a sentence, a setting or an address, is masked by all rules.
        """
        if NAME.fullmatch(name) is None:
            return self
        return self._changed(_rules=self._rules.for_names)

    def _changed(self, **fields: object) -> "Redactor":
        other = object.__new__(Redactor)
        other.__dict__ = {**self.__dict__, **fields}
        return other

    def redact(self, text: str, limit: int | None = None) -> Redacted:
        """Mask what is secret, then cut to `limit` bytes of UTF-8.

        Markers read `[REDACTED:kind]` and are never cut in half. A fault of the redactor
        gives `[REDACTION_FAILED]`, never the text.
        """
        try:
            hits = None
            if self._is_quick and len(text) <= QUICK_CHARACTERS and text.isascii():
                hits = self._match(text.encode())
                if not hits:
                    whole = limit is None or len(text) <= limit
                    # Triggers see no right boundary: a cut makes no match of none.
                    return Redacted(text if whole else cut(text, limit or 0))
            return self._redact(text, limit, hits)
        except Exception:  # noqa: BLE001 - whatever it is, the raw text must not get out
            return Redacted(FAILED, ("failed",))

    def _redact(self, text: str, limit: int | None, hits: list[int] | None = None) -> Redacted:
        kinds: set[str] = set()
        bound = INPUT_CHARACTERS
        if limit is not None:
            bound = min(bound, max(AHEAD * limit, 2 * TAIL_CHARACTERS))
        if len(text) <= bound:
            out = self._mask_all(text, kinds, hits)
        else:
            out = self._mask_all(text[:bound], kinds)
            size = len(out.encode("utf-8", "replace"))
            out = cut(out, max(0, size - TAIL_CHARACTERS))
        if limit is not None:
            shorter = cut(out, limit)
            # A cut can make a match of what was none: a card number, a word of a name.
            while shorter != out:
                out = shorter
                shorter = cut(self._mask_all(out, kinds), limit)
        return Redacted(out, tuple(sorted(kinds)))

    def _mask_all(self, text: str, kinds: set[str], hits: list[int] | None = None) -> str:
        flat, markers = _flatten(text)
        for _ in range(ROUNDS):
            spans = self._find(text, flat, markers, hits)
            hits = None
            if not spans:
                break
            kinds.update([kind for _, _, kind in spans])
            is_plain = not markers and text.isascii()
            text = mask(text, spans)
            flat, markers = mask_flat(flat, spans) if is_plain else _flatten(text)
        return text

    def _find(
        self, text: str, flat: bytes, markers: list[Span], hits: list[int] | None
    ) -> list[tuple[int, int, str]]:
        if hits is None:
            hits = self._match(flat)
        if not hits and self._is_quick and text.isascii():
            return []
        findings: list[Finding] = []
        self._look_at(View(flat), hits, findings)
        if self._rules.hint in hits or self._may_hold_escaped(flat, hits):
            decoded = decode(flat)
            if decoded is not None:
                self._look_at(decoded, self._match(decoded.body), findings)
        if self._known.has_foreign and not text.isascii():
            findings += self._find_raw(text)
        return merge(findings, markers) if findings else []

    def _may_hold_escaped(self, flat: bytes, hits: list[int]) -> bool:
        """Take off backslashes roughly, to see whether a closer look is worth it."""
        if self._rules.easy_hint not in hits:
            return False
        if self._always_known or self._own is not None:
            return True
        return self._match(without_backslashes(flat)) != []

    def _look_at(self, view: View, hits: list[int], findings: list[Finding]) -> None:
        body = view.body
        found: list[Finding] = []
        if self._always_known or self._rules.known in hits:
            found += [(*span, KNOWN) for span in self._known.find(body)]
        if hits:
            if self._passing:
                found += [(*span, KNOWN) for span in self._passing.find(body)]
            self._rules.collect(body, hits, found)
        if self._own is not None:
            found += self._own.find(body)
        if view.is_plain:
            findings += found
            return
        for start, end, kind, rank in found:
            if start < end:
                findings.append((*view.span(start, end), kind, rank))

    def _find_raw(self, text: str) -> Iterator[Finding]:
        """Look for known values of other alphabets as they are written."""
        raw = text.encode("utf-8", "surrogatepass")
        for start, end, kind in self._known.find(raw):
            first, last = (len(raw[:at].decode("utf-8", "replace")) for at in (start, end))
            yield first, last, kind, KNOWN


def _flatten(text: str) -> tuple[bytes, list[Span]]:
    """Fold a text and fill its markers with a byte that no rule takes for part of anything."""
    flat = fold(text)
    if FLAT_MARK not in flat:
        return flat, []
    markers = [found.span() for found in MARKER.finditer(text)]
    body = bytearray(flat)
    for start, end in markers:
        body[start:end] = FILLER * (end - start)
    return bytes(body), markers
