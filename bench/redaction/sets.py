"""The sets: each a file of texts, written by the makers that its tables name.

    positive, negative = make_set("five", seed)

A table holds the `texts` of one maker, `count` says how many documents it makes of them (without it
one of each), its other keys are what that maker reads. Everything is made from a seed at run time:
no file holds anything that looks like a secret. A positive document knows its secrets as they stand
in the text; a negative one must be left alone to the letter.
"""

# ruff: noqa: ANN401, S311 - whatever a file holds, seeded chance
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from bench.redaction.documents import Document
from bench.redaction.templates import (
    FOLDER,
    FULL_WIDTH,
    fill,
    is_apart,
    is_escaped,
    named,
    one_of,
    write,
)

# A shorter piece of a token says nothing, and is not looked for.
LEAST_PIECE = 6


@dataclass(frozen=True, slots=True)
class Draw:
    """What one document is made from: a table of the set, its tokens, chance and its number."""

    texts: dict[str, Any]
    tokens: Sequence[str]
    random: Random
    turn: int

    def next(self, texts: Sequence[Any]) -> Any:
        """Return the text whose turn it is."""
        return texts[self.turn % len(texts)]

    def chance(self, key: str) -> Any:
        return self.random.choice(self.texts[key])

    def fill(self, template: str) -> str:
        return fill(template, self.random)

    def prose(self) -> str:
        return self.fill("{prose}")

    def fit(self) -> list[str]:
        return [one for one in self.tokens if re.match(self.texts.get("only", ""), one)]


Maker = Callable[[Draw], Document | Iterable[Document]]


def marked(whole: str) -> tuple[str, str]:
    """Return a token without << >>, and the secret part that they mark in it."""
    found = re.search("<<(.*)>>", whole)
    whole = whole.replace("<<", "").replace(">>", "")
    return whole, found[1] if found else whole


def shown(secret: str, text: str, random: Random) -> str:
    """Return a secret as it stands in a text: plain or escaped."""
    if secret in text:
        return secret
    forms = (write(form, secret, random) for form in ("url", ["json", "inside"], "html"))
    return next((form for form in forms if form in text), secret)


def token(draw: Draw) -> Document:
    """A provider's token in any carrier."""
    carrier, secret = draw.chance("carriers"), draw.fill(draw.next(draw.tokens))
    text = write(carrier, secret, draw.random)
    return Document("token", text, (shown(secret, text, draw.random),), frame=(secret,))


def provider(draw: Draw) -> Iterator[Document]:
    """A token by the format that its provider documents, once in each context."""
    name, template = draw.next(draw.texts["texts"])
    for place, context in draw.texts["contexts"]:
        whole, secret = marked(draw.fill(template))
        text = write(context, whole, draw.random, named(name))
        yield Document(f"provider, {place}", text, (shown(secret, text, draw.random),))


def header(draw: Draw) -> Document:
    """A header as clients, proxies and libraries print it."""
    name, template, alphabet = draw.next(draw.texts["texts"])
    secret = draw.fill(alphabet)
    value = template.replace("§", secret)
    text = write(draw.chance("carriers"), value, draw.random, {"§V": value, **named(name)})
    return Document("header", text, (secret,), frame=(value,))


def address(draw: Draw) -> Document:
    """A connection address or a link that carries a secret."""
    template, alphabet = draw.next(draw.texts["texts"])
    secret = draw.fill(alphabet)
    url = draw.fill(template).replace("§", secret)
    text = one_of(draw.texts["carriers"], url, draw.random)
    return Document("address", text, (secret,), frame=(url,))


def named_value(draw: Draw) -> Document:
    """An opaque value behind the name of a secret."""
    secret = draw.fill(draw.chance("values"))
    carrier, name = draw.chance("texts"), draw.chance("names")
    text = write(carrier, secret, draw.random, named(name))
    return Document("key_value", text, (shown(secret, text, draw.random),))


def key_value(draw: Draw) -> Document:
    """A value behind a name, in files, commands and code; some inside a log line or JSON."""
    texts, random = draw.texts, draw.random
    around = one_of(texts["around"], "§", random)
    is_wrapped = random.random() < texts["wrapped"]
    template, alphabet = draw.next(texts["texts"])
    secret = draw.fill(alphabet)
    text = template.replace("§", secret)
    text = one_of(texts["wraps"], text, random) if is_wrapped else around.replace("§", text)
    return Document("key_value", text, (secret,))


def prose(draw: Draw) -> Document:
    """A secret told in a sentence."""
    texts, random = draw.texts, draw.random
    secret = draw.fill(draw.chance("values"))
    text = write(draw.next(texts["texts"]), secret, random)
    if random.random() < texts["among"]:
        text = write(texts["around"], text, random)
    return Document("prose", text, (secret,))


def pem(draw: Draw) -> Document:
    """A private key: whole, without END, on one line, escaped, indented, of other makers."""
    texts, random = draw.texts, draw.random
    lines = [draw.fill("{base64:64}") for _ in range(random.randint(*texts["lines"]))]
    kind, tail = draw.chance("kinds"), draw.fill(texts["tail"])
    begin, end = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
    holes = {
        "§B": begin,
        "§E": end,
        "§L": "\n".join(lines),
        "§l": "\n".join(lines[:-1]),
        "§1": lines[0],
        "§C": str(len(lines)),
        "§T": tail,
    }
    text = write(draw.next(texts["texts"]), "", random, holes)
    secrets = tuple(line for line in (*lines, tail) if line in text)
    return Document("pem", text, secrets, frame=(text,), leak_from=texts["leak_from"])


def wrapped(draw: Draw) -> Document:
    """A secret that was encoded whole: base64, hex, percent, quoted-printable, compressed."""
    texts, random = draw.texts, draw.random
    secret = draw.fill(random.choice(draw.tokens))
    inner = write(draw.chance("inner"), secret, random)
    form = draw.next(texts["texts"])
    encoded = write(form, inner, random)
    text = one_of(texts["carriers"], encoded, random)
    lines = encoded.split("\n")
    # Of what is escaped sign by sign, the name before a secret is none.
    core = write(form, secret, random) if is_escaped(form) else ""
    return Document(
        "wrapped",
        text,
        (core or max(lines, key=len),),
        frame=(encoded, *lines),
        leak_from=texts["leak_apart"] if is_apart(form) else texts["leak_from"],
    )


def halved(draw: Draw) -> Document:
    """A token that an earlier cut leaves half of, or our own limit."""
    if draw.turn % 2 == 0:
        return limited(draw)
    secret, head = _headed(draw)
    kept = draw.random.randint(1, 8)
    left = secret[: head + kept]
    text = f"{draw.prose()} {left}"
    return Document("truncated", text, (left,), frame=(left,), leak_from=len(left))


def limited(draw: Draw) -> Document:
    """A token that the limit cuts: no head of it may be left beyond its beginning."""
    secret, head = _headed(draw)
    before = write(draw.next(draw.texts["texts"]), "", draw.random)
    least = head + draw.texts["least"]
    limit = len(before.encode()) + draw.random.randint(least, len(secret) - 1)
    text = f"{before}{secret} {draw.prose()}"
    return Document("truncated", text, (secret[head:],), limit=limit, leak_from=4)


def _headed(draw: Draw) -> tuple[str, int]:
    """Return a token, and how long its beginning is."""
    fit = draw.fit()
    template = fit[draw.turn * draw.texts["step"] % len(fit)]
    return draw.fill(template), max(template.find("{"), 0)


def sprinkled(draw: Draw) -> Document:
    """A token that is disguised all over, in part, or twice."""
    random, alike = draw.random, str.maketrans(*draw.texts["alike"])
    secret = draw.fill(random.choice(draw.fit()))
    invisible = draw.chance("invisible")
    places = sorted(random.sample(range(1, len(secret)), 3))
    forms = (
        "".join(invisible + sign if at in places else sign for at, sign in enumerate(secret)),
        invisible.join(secret),
        secret.translate(FULL_WIDTH),
        secret.translate(alike),
        secret[:6].translate(FULL_WIDTH) + secret[6:],
        secret[:8].translate(alike) + secret[8:],
        secret.translate(alike)[:9] + invisible + secret[9:],
        "".join(sign.translate(FULL_WIDTH) if sign.isdigit() else sign for sign in secret),
    )
    worn = draw.next(forms)
    text = write(draw.chance("texts"), worn, random)
    return Document("disguised", text, (worn,), frame=(worn,))


def card(draw: Draw) -> Document:
    """A card number with a right sum, as people, forms and terminals write it."""
    head, groups = draw.next(draw.texts["cards"]).split(",")
    sizes = [int(size) for size in groups]
    digits = head + draw.fill(f"{{digit:{sum(sizes) - len(head) - 1}}}")
    digits += luhn(digits)
    ends = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    parts = [digits[a:b] for a, b in pairwise(ends)]
    number = str(draw.chance("gaps")).join(parts)
    if draw.turn % 5 == 4:
        number = number.translate(FULL_WIDTH)
    text = write(draw.chance("texts"), number, draw.random)
    return Document("card", text, (number,))


def luhn(digits: str) -> str:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def known_cut(draw: Draw) -> Document:
    """A registered value, encoded or a line of it, in a sentence or cut by the limit."""
    value = draw.fill(draw.next(draw.texts["values"]))
    forms = [write(form, value, draw.random) for form in draw.texts["texts"]]
    forms += value.strip().split("\n")
    form = forms[draw.turn * 5 % len(forms)]
    # What two letters before and after leave of base64 says nothing of the value.
    secret = form[4:-6] if form.startswith("eH") else form.strip()
    text = f"{draw.prose()} <{form}> {draw.prose()}"
    if draw.turn % 4:
        return Document("known", text, (secret,), known=(value,))
    limit = len(text.split("<", maxsplit=1)[0].encode()) + draw.random.randint(5, len(form))
    return Document("known", text, (secret,), known=(value,), limit=limit, leak_from=4)


def beside(draw: Draw) -> Document:
    """A token directly beside markup and escapes."""
    secret = draw.fill(draw.random.choice(draw.tokens))
    text = _among_lines(draw.next(draw.texts["texts"]).replace("§", secret), draw)
    return Document("token", text, (secret,), frame=(secret,))


def wraps(draw: Draw) -> Document:
    """A token that is wrapped over lines."""
    return _broken("wraps", draw)


def joins(draw: Draw) -> Document:
    """A token that is joined from literals."""
    return _broken("joins", draw)


def _broken(category: str, draw: Draw) -> Document:
    pieces = _pieces(draw.fill(draw.random.choice(draw.tokens)), draw.random)
    before, between, after = draw.next(draw.texts["texts"])
    whole = between.join(pieces)
    text = _among_lines(f"{before}{whole}{after}", draw)
    secrets = tuple(piece for piece in pieces if len(piece) >= LEAST_PIECE)
    return Document(category, text, secrets, frame=(whole,))


def _pieces(token: str, random: Random) -> list[str]:
    """Break a token: at the end of its beginning, or anywhere, once or twice."""
    begun = max(token.find(mark) for mark in "-_.") + 1
    if 2 < begun < len(token) // 2 and random.random() < 0.25:
        return [token[:begun], token[begun:]]
    places = sorted(random.sample(range(6, len(token) - 5), random.randint(1, 2)))
    return [token[a:b] for a, b in zip((0, *places), (*places, None), strict=True)]


def _among_lines(text: str, draw: Draw) -> str:
    is_alone = draw.random.choice((True, True, False))
    before, after = draw.prose(), draw.prose()
    return text if is_alone else f"{before}\n{text}\n{after}"


def negative(draw: Draw) -> Document:
    """A text without a secret that looks as if it had one."""
    return Document("negative", draw.fill(draw.next(draw.texts["texts"])))


MAKERS: dict[str, Maker] = {
    make.__name__: make
    for make in (
        token, provider, header, address, named_value, key_value, prose, pem, wrapped, halved,
        limited, sprinkled, card, known_cut, beside, wraps, joins, negative,
    )
}  # fmt: skip


@cache
def _read(number: str) -> dict[str, Any]:
    texts: dict[str, Any] = tomllib.loads((FOLDER / f"{number}.toml").read_text(encoding="utf-8"))
    if "provider" in texts:
        by_name = texts["provider"]["texts"].items()
        texts["provider"]["texts"] = [(name, text) for name, all_of in by_name for text in all_of]
    return texts


def first_run(name: str) -> dict[str, float]:
    """Return the shares that a set had on its first run, by kind; none are kept of older sets."""
    shares: dict[str, float] = _read(name).get("first_run", {})
    return shares


def make_set(name: str, seed: int) -> tuple[list[Document], list[Document]]:
    """Return the positive and the negative documents of a set."""
    texts = _read(name)
    random = Random(f"{name}{seed}")
    made: list[Document] = []
    for _ in range(texts.get("rounds", 1)):
        for maker, table in texts.items():
            if maker in MAKERS and maker != "negative":
                made += _documents(MAKERS[maker], table, texts, random)
    return made, list(_documents(negative, texts["negative"], texts, random))


def _documents(
    make: Maker, table: dict[str, Any], texts: dict[str, Any], random: Random
) -> Iterator[Document]:
    tokens = texts.get("tokens", ())
    for turn in range(table.get("count") or len(table.get("texts", tokens))):
        found = make(Draw(table, tokens, random, turn))
        yield from [found] if isinstance(found, Document) else found
