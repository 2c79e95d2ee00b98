"""The redaction pipeline: bound, normalise, known values, rules, truncate."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from failsoft.redaction.checks import FILLER
from failsoft.redaction.known_values import KnownValues
from failsoft.redaction.normalise import View, decode, fold, without_backslashes
from failsoft.redaction.re2_search import OwnRules, Span
from failsoft.redaction.rules import RuleSet, SecretRule, load_rule_set

PREVIEW_BYTES = 8192
MARKER = re.compile(r"\[REDACTED:[a-z0-9_-]{1,40}\]")
LONGEST_MARKER = len("[REDACTED:]") + 40


def cut(text: str, limit_bytes: int = PREVIEW_BYTES) -> str:
    """Return the longest head of `text` that fits in `limit_bytes` of UTF-8.

    Characters are never split; a redaction marker that does not fit is dropped.
    """
    head = text[: limit_bytes + 1].encode("utf-8", "surrogatepass")
    if len(head) <= limit_bytes:
        return text
    border = limit_bytes
    while head[border] & 0xC0 == 0x80:  # inside a character
        border -= 1
    shown = head[:border].decode("utf-8", "surrogatepass")
    return shown[: _before_split_marker(text, len(shown))]


def _before_split_marker(text: str, border: int) -> int:
    for marker in MARKER.finditer(text, max(0, border - LONGEST_MARKER), border + LONGEST_MARKER):
        if marker.start() < border < marker.end():
            return marker.start()
    return border


MARK = "[REDACTED:"
FLAT_MARK = MARK.encode()
# start, end, kind, rank: overlapping findings get the kind of the lowest rank
Finding = tuple[int, int, str, int]


def merge(findings: Sequence[Finding], markers: list[Span]) -> list[tuple[int, int, str]]:
    """Return findings sorted, with overlaps joined, outside of existing markers."""
    if len(findings) == 1 and not markers:
        return [findings[0][:3]]
    starts = [opening for opening, _ in markers]
    widened = filter(None, (_widen(finding, markers, starts) for finding in findings))
    merged: list[Finding] = []
    for start, end, kind, rank in sorted(
        widened, key=lambda found: (found[0], -found[1], found[3])
    ):
        if merged and start < merged[-1][1]:
            first, last, old, best = merged[-1]
            merged[-1] = (first, max(end, last), *((kind, rank) if rank < best else (old, best)))
        else:
            merged.append((start, end, kind, rank))
    return [(start, end, kind) for start, end, kind, _ in merged]


def _widen(finding: Finding, markers: list[Span], starts: list[int]) -> Finding | None:
    """Return a finding widened to whole markers; None when it is inside one."""
    if not markers:
        return finding
    start, end, kind, rank = finding
    before = bisect_right(starts, start) - 1
    if before >= 0 and start < markers[before][1]:
        if end <= markers[before][1]:
            return None
        start = markers[before][0]
    after = bisect_left(starts, end) - 1
    if after >= 0:
        end = max(end, markers[after][1])
    return start, end, kind, rank


def mask_flat(flat: bytes, spans: list[tuple[int, int, str]]) -> tuple[bytes, list[Span]]:
    """Return the folded and filled form of a text after `mask`, and its markers."""
    parts: list[bytes] = []
    markers: list[Span] = []
    done = size = 0
    for start, end, kind in spans:
        size += start - done
        width = len(MARK) + len(kind) + 1
        parts += (flat[done:start], FILLER * width)
        markers.append((size, size + width))
        size += width
        done = end
    return b"".join((*parts, flat[done:])), markers


def mask(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        parts += (text[done:start], f"{MARK}{kind}]")
        done = end
    return "".join((*parts, text[done:]))


FAILED = "[REDACTION_FAILED]"
INPUT_CHARACTERS = 262_144
# A text that is cut anyway is searched up to this multiple of its limit.
AHEAD = 8
# The longest partial token after a cut at the input bound; dropped from the end.
TAIL_CHARACTERS = 4_096
# Longer texts are bounded first.
QUICK_CHARACTERS = 8_192
ROUNDS = 6
KNOWN = 0
KIND = re.compile(r"[a-z0-9_-]{1,40}")
# Names are no sentence, setting or address; several are separated by commas.
NAME_PART = r"[\w.:/@+~#()\[\]-]{1,200}"
NAME = re.compile(rf"(?!.*://){NAME_PART}(?:,{NAME_PART}){{0,15}}")


class Redacted(NamedTuple):
    """A text that may be stored, and the sorted kinds of the masked secrets."""

    text: str
    found: tuple[str, ...] = ()


class Redact(Protocol):
    """Masks and truncates a text; in a name, only certain secrets are masked."""

    def __call__(self, text: str, limit: int | None, *, is_name: bool = False) -> Redacted: ...


class Redactor:
    """Masks secrets in text: idempotent, linear, never raises, immutable."""

    def __init__(
        self,
        rules: RuleSet | Sequence[SecretRule] | None = None,
        known: Mapping[str, str] | None = None,
        *,
        passing: Mapping[str, str] | None = None,
        own: OwnRules | None = None,
        is_lasting: bool = False,
    ) -> None:
        """Prepare rules (the packed ones) and `known`, value to kind.

        Raises WeakSecretError for a short value.

        `passing` values are searched only in texts with something like a token. `own` are
        the rules of a project. With `is_lasting`, construction takes milliseconds longer to
        save microseconds for each text.
        """
        rules, known = load_rule_set() if rules is None else rules, known or {}
        self._rules = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        for kind in (*known.values(), *(passing or {}).values()):
            if KIND.fullmatch(kind) is None:
                raise ValueError("a kind is 1 to 40 of a-z, 0-9, _ and -")
        self._known = KnownValues(known)
        self._passing = KnownValues(passing or {})
        self._own = own
        is_joined = is_lasting and bool(self._known)
        self._match = (
            self._rules.match_with(self._known.prefixes) if is_joined else self._rules.match
        )
        self._always_known = bool(self._known) and not is_joined
        self._is_quick = not self._always_known and own is None

    def with_passing(self, passing: Mapping[str, str]) -> "Redactor":
        return self._copy_with(_passing=KnownValues(passing))

    def with_own(self, own: OwnRules | None) -> "Redactor":
        return self._copy_with(_own=own, _is_quick=own is None and not self._always_known)

    def for_name(self, name: str) -> "Redactor":
        """Return a redactor that masks known values, own rules and whole tokens in a name.

        Other texts, such as a sentence, a setting or an address, are masked by all rules.
        """
        if NAME.fullmatch(name) is None:
            return self
        return self._copy_with(_rules=self._rules.for_names)

    def _copy_with(self, **fields: object) -> "Redactor":
        other = object.__new__(Redactor)
        other.__dict__ = {**self.__dict__, **fields}
        return other

    def redact(self, text: str, limit: int | None = None) -> Redacted:
        """Mask secrets, then truncate to `limit` bytes of UTF-8.

        Markers have the form `[REDACTED:kind]` and are never split. An error of the redactor
        returns `[REDACTION_FAILED]`, never the text.
        """
        try:
            hits = None
            if self._is_quick and len(text) <= QUICK_CHARACTERS and text.isascii():
                hits = self._match(text.encode())
                if not hits:
                    is_short = limit is None or len(text) <= limit
                    # Triggers have no right boundary, so a cut cannot create a match.
                    return Redacted(text if is_short else cut(text, limit or 0))
            return self._redact(text, limit, hits)
        except Exception:  # noqa: BLE001 - no error may expose the raw text
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
            # A cut can create a match: a card number, a word of a name.
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
        self._collect(View(flat), hits, findings)
        if self._rules.hint in hits or self._may_hold_escaped(flat, hits):
            decoded = decode(flat)
            if decoded is not None:
                self._collect(decoded, self._match(decoded.body), findings)
        if (self._known.has_foreign or self._own is not None) and not text.isascii():
            findings += self._find_raw(text)
        return merge(findings, markers) if findings else []

    def _may_hold_escaped(self, flat: bytes, hits: list[int]) -> bool:
        """Whether the text may have an escaped secret, by a rough removal of backslashes."""
        if self._rules.easy_hint not in hits:
            return False
        if self._always_known or self._own is not None:
            return True
        return self._match(without_backslashes(flat)) != []

    def _collect(self, view: View, hits: list[int], findings: list[Finding]) -> None:
        body = view.body
        view_findings: list[Finding] = []
        if self._always_known or self._rules.known in hits:
            view_findings += [(*span, KNOWN) for span in self._known.find(body)]
        if hits:
            if self._passing:
                view_findings += [(*span, KNOWN) for span in self._passing.find(body)]
            self._rules.collect(body, hits, view_findings)
        if self._own is not None:
            view_findings += self._own.find(body)
        if view.is_plain:
            findings += view_findings
            return
        for start, end, kind, rank in view_findings:
            if start < end:
                findings.append((*view.span(start, end), kind, rank))

    def _find_raw(self, text: str) -> Iterator[Finding]:
        """Yield what contains other alphabets, in the raw text: known values, matches of `own`."""
        raw = text.encode("utf-8", "surrogatepass")
        findings = [(*span, KNOWN) for span in self._known.find(raw)]
        if self._own is not None:
            findings += self._own.find(raw)
        character_of, before = {0: 0}, 0
        for place in sorted({place for finding in findings for place in finding[:2]}):
            passed = len(raw[before:place].decode("utf-8", "replace"))
            character_of[place] = character_of[before] + passed
            before = place
        for start, end, kind, rank in findings:
            yield character_of[start], character_of[end], kind, rank


def _flatten(text: str) -> tuple[bytes, list[Span]]:
    """Return the folded text, with markers replaced by a filler that no rule matches."""
    flat = fold(text)
    if FLAT_MARK not in flat:
        return flat, []
    markers = [match.span() for match in MARKER.finditer(text)]
    body = bytearray(flat)
    for start, end in markers:
        body[start:end] = FILLER * (end - start)
    return bytes(body), markers
