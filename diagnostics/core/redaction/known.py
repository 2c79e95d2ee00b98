"""Known values: the secrets we hold ourselves, in every dress they can turn up in."""

import html
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from diagnostics.core.redaction.normalise import normalise

MINIMUM_LENGTH = 8


class WeakSecretError(ValueError):
    """a value under 8 characters cannot be masked without masking ordinary text"""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def encodings(value: str) -> frozenset[bytes]:
    """Give every form of `value` to look for, as UTF-8 bytes of at least 8.

    Raw, trimmed, lines, JSON once and twice, URL once and twice, HTML, base64 standard
    and URL-safe at three alignments (which finds Basic pairs too), hex in both cases,
    repr of text and bytes, and the decoded view. Raises WeakSecretError under 8
    characters.
    """
    trimmed = value.strip()
    if len(trimmed) < MINIMUM_LENGTH:
        raise WeakSecretError
    forms: set[bytes] = set()
    for part in _parts(value, trimmed):
        forms.update(form.encode("utf-8", "surrogatepass") for form in _dressed(part))
        forms.update(_base64(part.encode("utf-8", "surrogatepass")))
        forms.add(normalise(part))
    return frozenset(form for form in forms if len(form) >= MINIMUM_LENGTH)


def _parts(value: str, trimmed: str) -> Iterator[str]:
    yield value
    yield trimmed
    lines = [line.strip() for line in value.splitlines()]
    yield from (line for line in lines if len(line) >= MINIMUM_LENGTH)


def _dressed(value: str) -> Iterable[str]:
    once = json.dumps(value)[1:-1]
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    raw = value.encode("utf-8", "surrogatepass")
    url = quote(raw, safe="")
    yield from (value, once, plain, json.dumps(once)[1:-1], json.dumps(plain)[1:-1])
    yield from (url, _lower_escapes(url), quote(url, safe=""), quote_plus(raw))
    yield from (quote(raw), quote(quote(raw)))
    yield from (html.escape(value), html.escape(value, quote=False))
    yield from (html.escape(html.escape(value)), value.replace("/", "\\/"))
    yield from (json.dumps(html.escape(value))[1:-1], html.escape(once))
    yield from (raw.hex(), raw.hex().upper())
    yield from (repr(value)[1:-1], repr(raw)[2:-1])


def _lower_escapes(url: str) -> str:
    head, *rest = url.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _base64(raw: bytes) -> Iterator[bytes]:
    """Give the inner characters that do not depend on the neighbours, per alignment."""
    for lead in range(3):
        padded = b"\0" * lead + raw
        first = -(-lead * 4 // 3)
        last = len(padded) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(padded)[first:last]
