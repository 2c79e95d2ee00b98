"""Which spellings of providers and models are the same name (names.toml).

Only the spelling is settled. `gpt-4o` and `gpt-4o-2024-08-06` are two models: a series has the
name that was requested, and what answered is its `served_model`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any


class NameKind(StrEnum):
    """The parts of a series that have several spellings."""

    PROVIDER = "provider"
    MODEL = "model"


SEPARATORS = re.compile(r"[\s._-]+")
_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _words_of(spelling: str) -> str:
    return SEPARATORS.sub("_", spelling.strip().casefold())


PREFIXES: tuple[str, ...] = tuple(_TABLE["models"]["prefixes"])
APIS = frozenset(_TABLE["apis"])
PROVIDERS: Mapping[str, str] = {
    _words_of(spelling): name
    for name, others in _TABLE["providers"].items()
    for spelling in (name, *others)
}


def plain(kind: NameKind, spelling: str) -> str:
    """Return a spelling without blanks around it, and without the API of a provider."""
    name = spelling.strip()
    provider, _, api = name.rpartition(".")
    return provider if provider and kind is NameKind.PROVIDER and api.casefold() in APIS else name


def key_of(kind: NameKind, spelling: str) -> str:
    """Return what all spellings of one name have in common; empty if the spelling is blank."""
    folded = plain(kind, spelling).casefold()
    if kind is NameKind.PROVIDER:
        return PROVIDERS.get(_words_of(folded), folded)
    prefix = next(filter(folded.startswith, PREFIXES), "")
    return folded.removeprefix(prefix) or folded


def choose_names(kind: NameKind, existing: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the key and name of each entry by which existing series keep their names.

    `existing` are the names of a project's series, the oldest first. Every one of them stays a
    name of its own; a new spelling joins the one that is spelled like its key, else the newest.
    """
    chosen = {key_of(kind, name): name for name in existing}
    chosen |= {name: name for name in existing if name in chosen}
    yield from chosen.items()
    for name in dict.fromkeys(existing):
        if chosen[key_of(kind, name)] != name and name not in chosen:
            yield name, name
