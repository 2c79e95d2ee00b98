"""How the texts of the sets are written: drawn characters and words, holes, steps.

`{alnum:12}` and `{hex:8-12}` are characters of an alphabet, `{uuid:1}` is one, `{number:1-9}` one
of these, `{word}` and `{prose}` are plain, `{note}` is prose around `§`. `§` is where the secret
goes. A template that is a list is taken in steps, each applied to what the last one gave: the name
of an encoding (`json`), a template, or a table with one of SHAPES (`{each = "%{:02X}"}`).
"""

import base64
import gzip
import html
import json
import quopri
import re
import string
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, quote_plus

FOLDER = Path(__file__).parent
WORDS: dict[str, list[str]] = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))
ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "hex": "0123456789abcdef",
    "digit": string.digits,
    "nonzero": "123456789",
    "letter": string.ascii_letters,
    "base64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "-_",
    "sign": string.ascii_letters + string.digits + "!#$%*?^+.-_",
}
PLACE = re.compile(rf"\{{(?:({'|'.join([*ALPHABETS, 'uuid', 'number'])}):(\d+)(?:-(\d+))?|"
                   r"(word|prose|note))\}")  # fmt: skip
Template = str | Sequence[str | Mapping[str, Any]]


def fill(template: str, random: Random) -> str:
    """Return the template with characters and words in its places."""

    def piece(found: re.Match[str]) -> str:
        if found[4] == "note":
            before, after = random.choice(WORDS["prose"]), random.choice(WORDS["prose"])
            return f"{before} {random.choice(WORDS['word'])} § {after}"
        if found[4]:
            return random.choice(WORDS[found[4]])
        if found[1] == "uuid":
            return _uuid(random)
        least = int(found[2])
        length = random.randint(least, int(found[3] or least))
        if found[1] == "number":
            return str(length)
        return "".join(random.choice(ALPHABETS[found[1]]) for _ in range(length))

    return PLACE.sub(piece, template)


def _uuid(random: Random) -> str:
    digits = "".join(random.choice("0123456789abcdef") for _ in range(32))
    ends = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    return "-".join(digits[first:last] for first, last in ends)


FULL_WIDTH = {c: chr(c + 0xFEE0) for c in range(0x21, 0x7F)}
ENCODINGS: dict[str, Callable[[str], str]] = {
    "json": json.dumps,
    "json utf-8": lambda s: json.dumps(s, ensure_ascii=False),
    "repr": repr,
    "repr of bytes": lambda s: repr(s.encode()),
    "inside": lambda s: s[1:-1],
    "strip": str.strip,
    "url": lambda s: quote(s, safe=""),
    "url plus": quote_plus,
    "html": html.escape,
    "hex": lambda s: s.encode().hex(),
    "hex apart": lambda s: s.encode().hex(" "),
    "hex colons": lambda s: s.encode().hex(":"),
    "upper": str.upper,
    "list": lambda s: str(list(s.encode())),
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 url": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 lines": lambda s: base64.encodebytes(s.encode()).decode().strip(),
    "unpadded": lambda s: s.rstrip("="),
    "gzip": lambda s: base64.b64encode(gzip.compress(s.encode(), mtime=0)).decode(),
    "quoted printable": lambda s: quopri.encodestring(s.encode(), quotetabs=True).decode(),
}
APART = ("hex apart", "hex colons", "list")


def _each_line(text: str, template: str) -> str:
    lines = enumerate(text.split("\n"))
    return "\n".join(template.replace("§#", str(n)).replace("§", line) for n, line in lines)


SHAPES: dict[str, Callable[[str, Any], str]] = {
    "each": lambda text, form: "".join(form.format(byte) for byte in text.encode()),
    "lines": lambda text, form: _each_line(text, form),
    "newlines": lambda text, new: text.replace("\n", new),
    "spaces": lambda text, new: text.replace(" ", new),
    "from": lambda text, first: text[first:],
}


def drawn(texts: Sequence[str], random: Random) -> str:
    """Return one of several texts; the only one there is is not drawn."""
    return texts[0] if len(texts) == 1 else random.choice(texts)


def write(
    template: Template, text: str, random: Random, holes: Mapping[str, str] | None = None
) -> str:
    """Return a template around a text, its steps taken one after the other."""
    for step in [template] if isinstance(template, str) else template:
        if not isinstance(step, str):
            [(name, value)] = step.items()
            text = SHAPES[name](text, value)
        elif step in ENCODINGS:
            text = ENCODINGS[step](text)
        else:
            written = fill(step, random)
            for hole, said in (holes or {}).items():
                written = written.replace(hole, said)
            text = written.replace("§", text)
    return text


def is_apart(template: Template) -> bool:
    """Ask whether a template writes each sign of a text apart."""
    steps = [template] if isinstance(template, str) else template
    return any(step in APART or is_escaped([step]) for step in steps)


def is_escaped(template: Template) -> bool:
    """Ask whether a template escapes each sign of a text."""
    return any(not isinstance(step, str) and "each" in step for step in template)


def one_of(
    templates: Sequence[Template], text: str, random: Random, holes: Mapping[str, str] | None = None
) -> str:
    """Return one of several templates around a text; all are written before one is drawn."""
    return drawn([write(template, text, random, holes) for template in templates], random)


def named(name: str) -> dict[str, str]:
    """Return the holes for a name, in the cases and with the joints that it is written in."""
    return {
        "§N": name,
        "§n": name.lower(),
        "§U": name.upper(),
        "§H": name.lower().replace("_", "-"),
    }
