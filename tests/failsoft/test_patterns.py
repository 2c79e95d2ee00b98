"""No pattern of the library can be split in exponentially many ways."""

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import failsoft

REPEATS = 26
# A text of two hundred characters takes microseconds, and minutes where each sign is a choice.
MOST_SECONDS = 0.5
ENDS = ("!", "A")
SIGNS = "a0v1A_ -./:;,+='\"`~*\\\n\t\0…<>|#"
# Nothing follows their repeated parts, so they never fail, and are only matched.
NEVER_FAIL = frozenset({"failsoft.redaction.shapes.PEM_BODY", "failsoft.redaction.shapes.PEM_TAIL"})


def find_patterns() -> dict[str, re.Pattern[Any]]:
    """Return the patterns of all modules and of the rules of the redactor by their names."""
    patterns: dict[str, re.Pattern[Any]] = {}
    for module in pkgutil.walk_packages(failsoft.__path__, "failsoft."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                for number, pattern in enumerate(inside(value)):
                    patterns[f"{module.name}.{name}" + f"[{number}]" * (number > 0)] = pattern
    rules = Path(failsoft.__path__[0], "redaction", "rules.toml")
    for number, row in enumerate(tomllib.loads(rules.read_text("utf-8"))["shape"]):
        if "pattern" in row:
            patterns[f"rule {number}"] = re.compile(row["pattern"].encode(), re.IGNORECASE)
    return patterns


def inside(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from inside(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from inside(item)


def texts() -> Iterator[str]:
    """Yield runs of each sign and of each two or three, behind a letter or none."""
    for first in SIGNS:
        for second in ("", *SIGNS):
            for third in ("", "1"):
                for end in ENDS:
                    yield "a" + (first + second + third) * REPEATS + end
                    yield (first + second + third) * REPEATS + end


def test_no_pattern_takes_longer_by_a_multiple_for_each_sign() -> None:
    patterns = find_patterns()
    assert len(patterns) > 200
    attacks = list(dict.fromkeys(texts()))
    for name, pattern in patterns.items():
        for text in attacks:
            body = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
            begun = process_time()
            pattern.match(body) if name in NEVER_FAIL else pattern.fullmatch(body)
            assert process_time() - begun < MOST_SECONDS, (name, text)
