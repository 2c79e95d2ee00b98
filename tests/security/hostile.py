"""Sixty bodies that mean harm, each with the headers it comes with."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.diagnostics.builders import wire_event

JSON_TYPE = "application/json"
LINES = "application/x-ndjson"
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Hostile:
    """A body, made when it is sent, and how it is sent."""

    name: str
    make: Callable[[], bytes]
    kind: str = JSON_TYPE
    coding: str = ""
    headers: dict[str, str] = field(default_factory=dict)


def bomb(megabytes: int, around: tuple[bytes, bytes] = (b"[", b"]")) -> bytes:
    """Pack so many megabytes of blanks."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(around[0])]
    parts += [packer.compress(b" " * MEGABYTE) for _ in range(megabytes)]
    return b"".join([*parts, packer.compress(around[1]), packer.flush()])


def one(**changes: object) -> bytes:
    """Write a batch of one event with changes."""
    return json.dumps([wire_event(**changes)]).encode()


def nested(opening: bytes, closing: bytes, depth: int, inside: bytes = b"1") -> bytes:
    """Nest so deep."""
    return opening * depth + inside + closing * depth


def plain(name: str, body: bytes, kind: str = JSON_TYPE) -> Hostile:
    """A body that is small enough to be made at once."""
    return Hostile(name, lambda: body, kind)


def packed(name: str, make: Callable[[], bytes], kind: str = JSON_TYPE) -> Hostile:
    """A gzipped body."""
    return Hostile(name, make, kind, "gzip")


def all_hostile() -> Iterator[Hostile]:
    """Give every body; the answer to each is 4xx, or 207 with every item refused."""
    yield from _bombs()
    yield from _nests()
    yield from _texts()
    yield from _values()
    yield from _shapes()
    yield from _headers()


def _bombs() -> Iterator[Hostile]:
    for megabytes in (5, 50, 500):
        yield packed(f"bomb of {megabytes} MB", partial(bomb, megabytes))
    yield packed("bomb of 10 GB", lambda: bomb(1024) * 10)
    yield packed("bomb in a bomb", lambda: gzip.compress(bomb(200)))
    yield packed("bomb of lines", lambda: bomb(100, (b"", b"\n")), LINES)
    yield packed("many members", lambda: gzip.compress(b" ") * 40_000)
    yield packed("many empty members", lambda: gzip.compress(b"") * 40_000)
    yield packed("no gzip at all", lambda: b"\x1f\x8b" + b"\xff" * 5000)
    yield packed("cut off", lambda: gzip.compress(one())[:-9])
    yield packed("wrong checksum", lambda: gzip.compress(one())[:-8] + b"\0" * 8)
    yield packed("more than is sent packed", lambda: b"\0" * (MEGABYTE + 9))
    yield Hostile("more than is sent plain", lambda: b"[" + b" " * (5 * MEGABYTE) + b"]")


def _nests() -> Iterator[Hostile]:
    for depth in (40, 10_000, 1_000_000):
        yield Hostile(f"{depth} arrays", partial(nested, b"[", b"]", depth))
        yield Hostile(f"{depth} objects", partial(nested, b'{"a":', b"}", depth))
    yield Hostile("arrays without end", lambda: b"[" * (4 * MEGABYTE))
    yield Hostile("a deep attribute", lambda: _inside(nested(b"[", b"]", 60)))
    yield Hostile("a million items", lambda: b"[" + b"1," * 1_000_000 + b"1]")
    yield Hostile("a million lines", lambda: b"{}\n" * 1_000_000, LINES)
    yield Hostile("two thousand values", lambda: _inside(b"[" + b"0," * 2000 + b"0]"))
    yield Hostile("a million keys", _many_keys)


def _inside(value: bytes) -> bytes:
    return one(attributes={"a": "HERE"}).replace(b'"HERE"', value)


def _many_keys() -> bytes:
    return json.dumps([{str(n): n for n in range(200_000)}]).encode()


def _texts() -> Iterator[Hostile]:
    yield plain("bytes that are no UTF-8", b'["\xff\xfe"]')
    yield plain("overlong UTF-8", b'["\xc0\x80"]')
    yield plain("UTF-16", '[{"a": 1}]'.encode("utf-16"))
    yield plain("UTF-32", '[{"a": 1}]'.encode("utf-32"))
    yield plain("raw NUL", b'["\0"]')
    yield plain("NUL for a name", one(name="graph.\0.succeeded"))
    yield plain("surrogate for an id", b'[{"event_id": "\\ud800"}]')
    yield plain("raw newline in a text", b'["a\nb"]')
    yield plain("a lone escape", b'["\\"]')
    yield plain("half an escape", b'["\\ud8"]')
    yield plain("only a byte order mark", b"\xef\xbb\xbf")
    yield plain("a key of a megabyte", json.dumps([{"k" * MEGABYTE: 1}]).encode())


def _values() -> Iterator[Hostile]:
    yield plain("a huge integer", _inside(b"9" * 4000))
    yield Hostile("an integer of a megabyte", lambda: _inside(b"9" * MEGABYTE))
    yield plain("an infinite number", _inside(b"1e999"))
    yield plain("a number without end", b"[1" + b"0" * 300_000)
    yield plain("NaN", b"[NaN]")
    yield plain("Infinity", b"[-Infinity]")
    yield plain("an attempt of 2^63", one(attempt=2**63))
    yield plain("a negative attempt", one(attempt=-1))
    yield plain("a true attempt", one(attempt=True))
    yield plain("an attempt with a fraction", one(attempt=1.5))
    yield plain("a year of 9999", one(occurred_at="9999-12-31T23:59:59Z"))
    yield plain("a 61st second", one(occurred_at="2026-11-21T14:32:61Z"))
    yield plain("an offset of 99 hours", one(occurred_at="2026-11-21T14:32:00+99:00"))
    yield plain("a time of NUL", one(occurred_at="\0"))
    yield plain("duplicate keys", b'[{"a": 1, "a": 2}]')
    yield plain("duplicate keys, escaped", b'[{"a": 1, "\\u0061": 2}]')


def _shapes() -> Iterator[Hostile]:
    for name, body in (
        ("nothing", b""),
        ("null", b"null"),
        ("an object", b"{}"),
        ("a text", b'"[]"'),
        ("a number", b"7"),
        ("two arrays", b"[][]"),
        ("items of every type", b'[null, 1, "a", [], true]'),
        ("__proto__", b'[{"__proto__": {"a": 1}, "constructor": 1}]'),
        ("SQL", b'[{"event_id": "\'; DROP TABLE diagnostics_event; --"}]'),
        ("a template", b'[{"name": "{{ settings.SECRET_KEY }}{% debug %}"}]'),
        ("a form", b"a=1&b=2"),
        ("XML", b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"),
    ):
        yield plain(name, body)


def _headers() -> Iterator[Hostile]:
    good = one()
    for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x", ""):
        yield plain(f"type {kind or 'none'}", good, kind)
    for charset in ("latin-1", "utf-7", "utf-16", "shift_jis"):
        yield plain(f"charset {charset}", good, f"{JSON_TYPE}; charset={charset}")
    for coding in ("br", "deflate", "zstd", "gzip, gzip"):
        yield Hostile(f"coding {coding}", lambda: good, JSON_TYPE, coding)
