"""A fifth set: manifests, shells, reprs, tools and sentences in thirty languages.

Written before any rule was changed for it. Each text is tried once a seed with other values, and
each of its secrets again where the limit of the preview cuts it.
"""

# ruff: noqa: S311 - seeded chance
import json
from random import Random

from bench.redaction_corpus import Document, fill
from bench.redaction_five_texts import (
    ADDRESS_CARRIERS,
    ADDRESSES,
    CARRIERS,
    HEADER_CARRIERS,
    HEADERS,
    NEGATIVES,
    PAIRS,
    SENTENCES,
    SPOKEN,
    TOKENS,
)
from bench.redaction_plain import PROSE

CUTS = 80


def tokens(random: Random) -> list[Document]:
    """A token of each family."""
    return [_held("token", random.choice(CARRIERS), fill(template, random)) for template in TOKENS]


def pairs(random: Random) -> list[Document]:
    """A value behind a name, in files, commands and code; some inside a log line."""
    documents = []
    for text, alphabet in PAIRS:
        around = random.choice(("§", "§", "§", f"{random.choice(PROSE)}\n§\n"))
        if random.random() < 0.2:
            around = "{}"
        value = fill(alphabet, random)
        whole = text.replace("§", value)
        shown = json.dumps({"out": whole}) if around == "{}" else around.replace("§", whole)
        documents.append(Document("key_value", shown, (value,)))
    return documents


def headers(random: Random) -> list[Document]:
    """A header as clients, proxies and settings write it."""
    documents = []
    for name, before, alphabet in HEADERS:
        value = fill(alphabet, random)
        text = random.choice(HEADER_CARRIERS)
        for hole, said in (("§N", name), ("§n", name.lower()), ("§V", before + value)):
            text = text.replace(hole, said)
        documents.append(Document("header", text, (value,), frame=(before + value,)))
    return documents


def addresses(random: Random) -> list[Document]:
    """An address with a secret."""
    documents = []
    for template, alphabet in ADDRESSES:
        value = fill(alphabet, random)
        url = fill(template, random).replace("§", value)
        text = random.choice(ADDRESS_CARRIERS).replace("§", url)
        documents.append(Document("address", text, (value,), frame=(url,)))
    return documents


def spoken(random: Random) -> list[Document]:
    """A sentence that tells a secret."""
    documents = []
    for sentence in SENTENCES:
        value = fill(random.choice(SPOKEN), random)
        text = sentence.replace("§", value)
        if random.random() < 0.4:
            text = f"{random.choice(PROSE)} {text} {random.choice(PROSE)}"
        documents.append(Document("prose", text, (value,)))
    return documents


def cut(random: Random) -> list[Document]:
    """A token that the limit cuts: no head of it may be left beyond its beginning."""
    documents = []
    for turn in range(CUTS):
        template = TOKENS[turn % len(TOKENS)]
        secret = fill(template, random)
        head = max(template.find("{"), 0)
        before = f"{random.choice(PROSE)} x={' ' * (turn % 2)}"
        limit = len(before.encode()) + random.randint(head + 1, len(secret) - 1)
        text = f"{before}{secret} {random.choice(PROSE)}"
        documents.append(Document("truncated", text, (secret[head:],), limit=limit, leak_from=4))
    return documents


def _held(category: str, carrier: str, secret: str) -> Document:
    return Document(category, carrier.replace("§", secret), (secret,), frame=(secret,))


MAKERS = (tokens, pairs, headers, addresses, spoken, cut)


def make_corpus(seed: int) -> tuple[list[Document], list[Document]]:
    """Give about 400 positive and 220 negative documents, each text once."""
    random = Random(f"five{seed}")
    positive = [document for make in MAKERS for document in make(random)]
    negative = [fill(text, random).replace("{{", "{").replace("}}", "}") for text in NEGATIVES]
    return positive, [Document("negative", text) for text in negative]
