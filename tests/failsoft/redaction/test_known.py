"""A known value is found in every dress (at least 15)."""

import base64
import html
import json
import quopri
import shlex
from collections.abc import Callable
from itertools import product
from random import Random
from urllib.parse import quote, quote_plus

import pytest

from failsoft.redaction import Redactor
from failsoft.redaction.known_values import WeakSecretError, encodings
from tests.corpora import each_of
from tests.failsoft.redaction.made_up import make


def b64(prefix: str, suffix: str = "") -> Callable[[str], str]:
    return lambda v: base64.b64encode((prefix + v + suffix).encode()).decode()


def b64url(prefix: str, suffix: str = "") -> Callable[[str], str]:
    return lambda v: base64.urlsafe_b64encode((prefix + v + suffix).encode()).decode()


DRESSES: dict[str, Callable[[str], str]] = {
    "raw": str,
    "trimmed": str.strip,
    "json": json.dumps,
    "json twice": lambda v: json.dumps(json.dumps(v)),
    "json unescaped": lambda v: json.dumps(v, ensure_ascii=False),
    "url": lambda v: quote(v, safe=""),
    "url path": quote,
    "url plus": quote_plus,
    "url twice": lambda v: quote(quote(v, safe=""), safe=""),
    "html": html.escape,
    "html in json": lambda v: json.dumps(html.escape(v)),
    "json in html": lambda v: html.escape(json.dumps(v)),
    "html numbers": lambda v: "".join(f"&#{ord(c)};" for c in v),
    "base64": b64(""),
    "base64 at 1": b64("x", "tail"),
    "base64 at 2": b64("xy", "tail"),
    "base64 url": b64url(""),
    "base64 url at 1": b64url("x", "t"),
    "base64 url at 2": b64url("xy"),
    "basic pair": lambda v: "Basic " + b64("user:")(v),
    "hex": lambda v: v.encode().hex(),
    "upper hex": lambda v: v.encode().hex().upper(),
    "repr": repr,
    "repr of bytes": lambda v: repr(v.encode()),
    "unicode escapes": lambda v: "".join(f"\\u{ord(c):04x}" for c in v),
    "zero width": "\u200b".join,
    "percent, sign by sign": lambda v: "".join(f"%{b:02X}" for b in v.encode()),
    "quoted-printable": lambda v: quopri.encodestring(v.encode(), quotetabs=True).decode(),
    "csv": lambda v: v.replace('"', '""'),
    "shell": shlex.quote,
    "list of bytes": lambda v: str(list(v.encode())),
    "utf-16 in base64": lambda v: base64.b64encode(v.encode("utf-16-le")).decode(),
    "base64 of base64": lambda v: b64("")(b64("")(v)),
    "hex in base64": lambda v: b64("")(v.encode().hex()),
    "full width": lambda v: "".join(chr(ord(c) + 0xFEE0) if 32 < ord(c) < 127 else c for c in v),
}
SHAPES = {
    "alnum": "{alnum:24}",
    "short": "{alnum:8}",
    "odd": "{alnum:4}/+=&%\"'<>\\ :@{alnum:6}",
    "foreign": "пароль{alnum:8}ß€",
    "lines": "{alnum:30}\n{alnum:30}\n{alnum:30}",
    "padded": "  {alnum:12}\n",
}


@each_of(product(DRESSES, SHAPES))
def test_s0_45_a_known_value_is_masked_in_every_dress(dress: str, shape: str) -> None:
    random = Random(f"{dress}{shape}")
    for _ in range(3):
        value = make(SHAPES[shape], random)[0]
        dressed = DRESSES[dress](value)
        redacted = Redactor([], {value: "mine"}).redact(f"before {dressed} after")
        assert redacted.found == ("mine",)
        assert value.strip() not in redacted.text
        assert redacted.text.startswith("before ")
        assert redacted.text.endswith(" after")


def test_one_line_of_a_value_of_many_lines_is_masked() -> None:
    value, (_, line, _) = make(SHAPES["lines"], Random(1))
    assert Redactor([], {value: "k"}).redact(f"x {line} y").text == "x [REDACTED:k] y"


@pytest.mark.parametrize("value", ["", "1234567", "   1234567   "])
def test_a_value_under_eight_characters_is_refused(value: str) -> None:
    with pytest.raises(WeakSecretError, match="8 characters"):
        encodings(value)


def test_at_least_fifteen_encodings_are_looked_for() -> None:
    assert len(encodings(make(SHAPES["odd"], Random(1))[0])) >= 15
