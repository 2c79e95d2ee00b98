"""Known values: secrets of the installation, in all encodings that may occur in a text."""

import html
import json
import quopri
import shlex
from base64 import b64encode, encodebytes, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus

from failsoft.redaction.normalise import normalise

MINIMUM_LENGTH = 8
# Folded forms that are mostly this are useless for a search.
UNKNOWN = b"?"
# Lines of base64 in mail: 57 bytes as 76 digits.
MIME_BYTES, MIME_DIGITS = 57, 76


class WeakSecretError(ValueError):
    """a value under 8 characters cannot be masked without masking ordinary text"""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@lru_cache(maxsize=512)
def encodings(value: str) -> frozenset[bytes]:
    """Return all forms of `value` to search for, as at least 8 bytes of UTF-8.

    Raw, trimmed, lines, JSON up to three times, URL once and twice, HTML, SQL, base64
    standard, URL-safe and in lines at three alignments (which finds Basic pairs too), hex
    in both cases and in pairs, repr of text and bytes, character escapes, and the decoded view.
    Raises WeakSecretError under 8 characters.
    """
    trimmed = value.strip()
    if len(trimmed) < MINIMUM_LENGTH:
        raise WeakSecretError
    forms: set[bytes] = set()
    for part in _parts(value, trimmed):
        forms.update(form.encode("utf-8", "surrogatepass") for form in _escaped_forms(part))
        raw = part.encode("utf-8", "surrogatepass")
        forms.update(_base64(raw))
        forms.update(_base64(part.encode("utf-16-le", "surrogatepass")))
        # Base64 of encoded forms.
        for encoded in (b64encode(raw), raw.hex().encode()):
            forms.update(_base64(encoded.rstrip(b"=")))
        for folded in {normalise(part), normalise(part, with_names=False)}:
            if folded.count(UNKNOWN) * 2 < len(folded):
                forms.add(folded)
    return frozenset(form for form in forms if len(form) >= MINIMUM_LENGTH)


def _parts(value: str, trimmed: str) -> Iterator[str]:
    yield value
    yield trimmed
    lines = [line.strip() for line in value.splitlines()]
    yield from (line for line in lines if len(line) >= MINIMUM_LENGTH)


def _escaped_forms(value: str) -> Iterable[str]:
    once = json.dumps(value)[1:-1]
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    raw = value.encode("utf-8", "surrogatepass")
    url = quote(raw, safe="")
    yield from (value, once, plain, json.dumps(once)[1:-1], json.dumps(plain)[1:-1])
    head, *rest = url.split("%")
    lower = head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)
    yield from (url, lower, quote(url, safe=""), quote_plus(raw))
    yield from (quote(raw), quote(quote(raw)))
    yield from (html.escape(value), html.escape(value, quote=False))
    yield from (html.escape(html.escape(value)), value.replace("/", "\\/"))
    yield from (json.dumps(html.escape(value))[1:-1], html.escape(once))
    yield from (json.dumps(json.dumps(once)[1:-1])[1:-1], value.replace("'", "''"))
    yield from (quote_plus(quote_plus(raw)), quote(quote_plus(raw), safe=""))
    for digits in (raw.hex(), raw.hex(" "), raw.hex(":"), raw.hex("-")):
        yield from (digits, digits.upper())
    if not value.isascii():
        yield from _char_escapes(value, raw)
    yield from (repr(value)[1:-1], repr(raw)[2:-1], ascii(value)[1:-1])
    yield from (value.replace('"', '""'), shlex.quote(value))
    yield from (", ".join(map(str, raw)), ",".join(map(str, raw)))
    yield quopri.encodestring(raw, quotetabs=True).decode("ascii")


def _char_escapes(value: str, raw: bytes) -> Iterator[str]:
    """Yield every character as an escape, for values that the decoded view cannot show."""
    for form in ("&#{};", "&#x{:x};", "&#x{:X};"):
        yield "".join(form.format(ord(char)) for char in value)
    wide = value.encode("utf-16-be", "surrogatepass")
    units = [wide[at : at + 2].hex() for at in range(0, len(wide), 2)]
    yield "".join(f"\\u{unit}" for unit in units)
    yield "".join(f"\\u{unit.upper()}" for unit in units)
    for form in ("\\x{:02x}", "\\x{:02X}", "\\{:03o}", "%{:02X}", "%{:02x}"):
        yield "".join(form.format(byte) for byte in raw)
    yield "\u200b".join(value)


def _base64(raw: bytes) -> Iterator[bytes]:
    """Yield the base64 characters that do not depend on neighbours, for each alignment."""
    for lead in range(3):
        padded = b"\0" * lead + raw
        first = -(-lead * 4 // 3)
        last = len(padded) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(padded)[first:last]
        if len(raw) > MIME_BYTES:
            for end in (b"\n", b"\r\n"):
                lines = encodebytes(padded).replace(b"\n", end)
                yield lines[first : last + last // MIME_DIGITS * len(end)]


class KnownValues:
    """Values to mask, by kind, with all forms that are searched."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._kinds = {form: kind for value, kind in values.items() for form in encodings(value)}
        self._longest = sorted(self._kinds, key=len, reverse=True)
        self._starts: dict[bytes, list[bytes]] = {}
        for form in self._longest:
            self._starts.setdefault(form[:MINIMUM_LENGTH], []).append(form)
        self.has_foreign = any(not form.isascii() for form in self._kinds)
        self._reach = len(self._longest[0]) if self._longest else 0

    def __bool__(self) -> bool:
        return bool(self._kinds)

    @property
    def prefixes(self) -> tuple[bytes, ...]:
        """The first 8 bytes of every form; a text without any of them has no known value."""
        return tuple(self._starts)

    def find(self, body: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield every occurrence, and the start of a value that is cut at the end."""
        for form in self._longest:
            at = body.find(form)
            while at >= 0:
                yield at, at + len(form), self._kinds[form]
                at = body.find(form, at + 1)
        yield from self._find_cut_off(body)

    def _find_cut_off(self, body: bytes) -> Iterator[tuple[int, int, str]]:
        for at in range(max(0, len(body) - self._reach), len(body) - MINIMUM_LENGTH + 1):
            for form in self._starts.get(body[at : at + MINIMUM_LENGTH], ()):
                if form.startswith(body[at:]):
                    yield at, len(body), self._kinds[form]
                    return
