"""A sixth set: tokens beside markup and escapes, wrapped over lines, joined from literals.

Written before any rule was changed for it; the texts are data (redaction_corpus_six.toml). Rules
were tuned to the half `develop`; the half `held` was run when they stood.
"""

# ruff: noqa: S311 - seeded chance
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from bench.redaction_corpus import Document, fill
from bench.redaction_plain import PROSE

TEXTS = Path(__file__).with_suffix(".toml")
ROUNDS = 4
# A shorter piece of a token says nothing, and is not looked for.
LEAST_PIECE = 6


@cache
def _texts() -> dict[str, Any]:
    return tomllib.loads(TEXTS.read_text(encoding="utf-8"))


def make_half(half: str, seed: int) -> tuple[list[Document], list[Document]]:
    """Return the positive and the negative documents of `develop` or `held`."""
    random, texts = Random(f"six{half}{seed}"), _texts()[half]
    positive = []
    for _ in range(ROUNDS):
        for carrier in texts["carriers"]:
            token = fill(random.choice(texts["tokens"]), random)
            text = _among_lines(carrier.replace("§", token), random)
            positive.append(Document("token", text, (token,), frame=(token,)))
        for category in ("wraps", "joins"):
            for marks in texts[category]:
                token = fill(random.choice(texts["tokens"]), random)
                positive.append(_broken(category, marks, _pieces(token, random), random))
    negative = [fill(text, random) for text in texts["negatives"]]
    return positive, [Document("negative", text) for text in negative]


def _pieces(token: str, random: Random) -> list[str]:
    """Break a token: at the end of its beginning, or anywhere, once or twice."""
    begun = max(token.find(mark) for mark in "-_.") + 1
    if 2 < begun < len(token) // 2 and random.random() < 0.25:
        return [token[:begun], token[begun:]]
    places = sorted(random.sample(range(6, len(token) - 5), random.randint(1, 2)))
    return [token[a:b] for a, b in zip((0, *places), (*places, None), strict=True)]


def _broken(category: str, marks: Sequence[str], pieces: Sequence[str], random: Random) -> Document:
    before, between, after = marks
    whole = between.join(pieces)
    text = _among_lines(f"{before}{whole}{after}", random)
    secrets = tuple(piece for piece in pieces if len(piece) >= LEAST_PIECE)
    return Document(category, text, secrets, frame=(whole,))


def _among_lines(text: str, random: Random) -> str:
    around = random.choice(("{}", "{}", "{a}\n{}\n{b}"))
    return (
        around.replace("{}", text)
        .replace("{a}", random.choice(PROSE))
        .replace("{b}", random.choice(PROSE))
    )
