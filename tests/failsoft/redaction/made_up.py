"""Made-up secrets: generated from a seed, so that none is written in a file."""

import re
import string
import tomllib
from pathlib import Path
from random import Random

ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase[:26],
    "hex": "0123456789abcdef",
    "digit": string.digits,
    "base64": string.ascii_letters + string.digits + "+/",
    "word": string.ascii_lowercase,
}
PLACE = re.compile(r"\{(\w+):(\d+)\}")
_EXAMPLES_FILE = Path(__file__).with_name("examples.toml")
EXAMPLES: dict[str, dict[str, list[str]]] = tomllib.loads(
    _EXAMPLES_FILE.read_text(encoding="utf-8")
)


def make(template: str, random: Random) -> tuple[str, list[str]]:
    """Fill `{alnum:20}` and the like; gives the text and the pieces filled in."""
    pieces: list[str] = []

    def fill(match: re.Match[str]) -> str:
        alphabet, length = ALPHABETS[match[1]], int(match[2])
        pieces.append("".join(random.choice(alphabet) for _ in range(length)))
        return pieces[-1]

    return PLACE.sub(fill, template), pieces
