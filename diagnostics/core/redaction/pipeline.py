"""The order that never changes: bound, normalise, known values, rules, truncate (X-17)."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from diagnostics.core.preview import MARKER, cut
from diagnostics.core.redaction.known import encodings
from diagnostics.core.redaction.normalise import View, view_decoded, view_flat
from diagnostics.core.redaction.rules import Rule, RuleSet

FAILED = "[REDACTION_FAILED]"
INPUT_CHARACTERS = 262_144
# Of a text that is cut anyway, so much more than its limit is looked at.
AHEAD = 8
# What a cut at the input bound can leave of a token; dropped from the end.
TAIL_CHARACTERS = 4_096
ROUNDS = 4
KIND = re.compile(r"[a-z0-9_-]{1,40}")

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text fit to be kept, and the kinds of what was masked in it, sorted."""

    text: str
    found: tuple[str, ...] = ()


class Redactor:
    """Masks secrets in text: idempotent, linear, never raises, immutable."""

    def __init__(
        self, rules: RuleSet | Sequence[Rule], known: Mapping[str, str]
    ) -> None:
        """Take rules and `known`, value to kind; WeakSecretError for a short value."""
        self._rules = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        self._kinds = {
            form: _checked_kind(kind)
            for value, kind in known.items()
            for form in encodings(value)
        }
        self._known = _alternation(self._kinds)

    def redact(self, text: str, limit: int | None = None) -> Redacted:
        """Mask what is secret, then cut to `limit` bytes of UTF-8.

        Markers read `[REDACTED:kind]` and are never cut in half. A fault of the redactor
        gives `[REDACTION_FAILED]`, never the text.
        """
        try:
            return self._redact(text, limit)
        except Exception:  # noqa: BLE001 - whatever it is, the raw text must not get out
            return Redacted(FAILED, ("failed",))

    def _redact(self, text: str, limit: int | None) -> Redacted:
        kinds: set[str] = set()
        bound = _bound_for(limit)
        out = self._mask_all(text[:bound], kinds)
        if len(text) > bound:
            out = cut(
                out, max(0, len(out.encode("utf-8", "replace")) - TAIL_CHARACTERS)
            )
        if limit is not None:
            shorter = cut(out, limit)
            # A cut can make a match of what was none: a card number, a word of a name.
            out = (
                shorter
                if shorter == out
                else cut(self._mask_all(shorter, kinds), limit)
            )
        return Redacted(out, tuple(sorted(kinds)))

    def _mask_all(self, text: str, kinds: set[str]) -> str:
        for _ in range(ROUNDS):
            found = list(self._find(text))
            spans = _merge(text, found) if found else []
            if not spans:
                break
            kinds.update(kind for _, _, kind in spans)
            text = _mask(text, spans)
        return text

    def _find(self, text: str) -> Iterator[Span]:
        flat = view_flat(text)
        decoded = view_decoded(flat)
        views = (flat,) if decoded is None else (flat, decoded)
        if self._known is not None:
            yield from self._find_known(text, views)
        for view in views:
            for start, end, kind in self._rules.find(view.body):
                yield (*view.span(start, end), kind)

    def _find_known(self, text: str, views: tuple[View, ...]) -> Iterator[Span]:
        for view in views:
            for found in self._known.finditer(view.body):
                yield (*view.span(*found.span()), self._kinds[found.group()])
        if not text.isascii():
            raw = text.encode("utf-8", "surrogatepass")
            for found in self._known.finditer(raw):
                start, end = (
                    len(raw[:at].decode("utf-8", "surrogatepass"))
                    for at in found.span()
                )
                yield start, end, self._kinds[found.group()]


def _bound_for(limit: int | None) -> int:
    if limit is None:
        return INPUT_CHARACTERS
    return min(INPUT_CHARACTERS, max(AHEAD * limit, 2 * TAIL_CHARACTERS))


def _checked_kind(kind: str) -> str:
    if KIND.fullmatch(kind) is None:
        raise ValueError("a kind is 1 to 40 of a-z, 0-9, _ and -")
    return kind


def _alternation(forms: Iterable[bytes]) -> Any:  # noqa: ANN401 - the binding has no types
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.longest_match = True
    options.log_errors = False
    options.max_mem = 64 << 20
    joined = b"|".join(_quote(form) for form in sorted(forms))
    return re2.compile(joined, options) if joined else None


def _quote(form: bytes) -> bytes:
    return b"".join(rb"\x%02x" % byte for byte in form)


def _merge(text: str, spans: Iterable[Span]) -> list[Span]:
    """Join what overlaps and leave alone what is a marker already, sorted by place."""
    markers = [found.span() for found in MARKER.finditer(text)]
    starts = [opening for opening, _ in markers]
    around = (_around(span, markers, starts) for span in spans)
    merged: list[Span] = []
    for start, end, kind in sorted(filter(None, around), key=_place):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, kind))
    return merged


def _place(span: Span) -> tuple[int, int]:
    return span[0], -span[1]


def _around(
    span: Span, markers: list[tuple[int, int]], starts: list[int]
) -> Span | None:
    """Widen a span to hold whole markers; None when it lies within one."""
    start, end, kind = span
    left = bisect_right(starts, start) - 1
    if left >= 0 and start < markers[left][1]:
        if end <= markers[left][1]:
            return None
        start = markers[left][0]
    right = bisect_left(starts, end) - 1
    if right >= 0:
        end = max(end, markers[right][1])
    return start, end, kind


def _mask(text: str, spans: list[Span]) -> str:
    parts: list[str] = []
    seen = 0
    for start, end, kind in spans:
        parts += (text[seen:start], f"[REDACTED:{kind}]")
        seen = end
    return "".join((*parts, text[seen:]))
