"""The provider and model that an event counts under: one name for all its spellings (names.toml).

The first spelling that a project sends becomes the name, and later ones join it. What a process
saw a few minutes ago costs no statement. Only the spelling is settled: `gpt-4o` and
`gpt-4o-2024-08-06` are two models. A series has the name that was requested, and what answered
is its `served_model`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import transaction

from diagnostics.ingest.models import NameKind, SeriesName
from failsoft.events import name_served

KEPT_SECONDS = 300.0
MOST_KEPT = 20_000
Spelling = tuple[NameKind, str]
Names = dict[Spelling, str | None]
_kept: dict[tuple[int, Spelling], tuple[str | None, float]] = {}
SEPARATORS = re.compile(r"[\s._-]+")
_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))


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
    provider, _, api = name.replace(":", ".").rpartition(".")
    is_of_api = provider and kind is NameKind.PROVIDER and api.casefold() in APIS
    return name[: len(provider)] if is_of_api else name


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


def settle_names(project_id: int, rows: Iterable[dict[str, Any]]) -> None:
    """Replace the provider and model of redacted rows by the names of their series.

    A blank name is none. A served model that is only another spelling of the requested one is
    the requested one.
    """
    rows = list(rows)
    names = _names_of(project_id, set(chain.from_iterable(map(_spellings_in, rows))))
    for row in rows:
        for kind, spelling in _spellings_in(row):
            row[kind.value] = names[kind, spelling]
        if "served_model" in row:
            model, served = row["model"], row["served_model"]
            if model and served and key_of(NameKind.MODEL, model) == key_of(NameKind.MODEL, served):
                row["served_model"] = model
            row["served"] = name_served(row["model"], row["served_model"], row["upstream"])


def _spellings_in(row: Mapping[str, Any]) -> list[Spelling]:
    return [(kind, spelling) for kind in NameKind if (spelling := row.get(kind.value)) is not None]


def _names_of(project_id: int, spellings: set[Spelling]) -> Names:
    now, names = monotonic(), Names()
    for spelling in spellings:
        name, until = _kept.get((project_id, spelling), (None, 0.0))
        if until > now:
            names[spelling] = name
    if unknown := spellings - names.keys():
        names |= _find_names(project_id, unknown)
    return names


def _find_names(project_id: int, spellings: set[Spelling]) -> Names:
    """Return the names of spellings; one of a new name becomes it once it is committed."""
    written = {
        (kind, name): _aliases().get((kind, name.strip().casefold()), name)
        for kind, name in spellings
    }
    keys = {(kind, name): key_of(kind, name) for (kind, _), name in written.items()}
    known = _known_names(project_id, {*keys.values(), *written.values()})
    new = {
        (kind, keys[kind, name]): plain(kind, name)
        for (kind, _), name in sorted(written.items())
        if keys[kind, name] and not known.keys() & {(kind, name), (kind, keys[kind, name])}
    }
    names = {
        (kind, spelling): next(
            (known[kind, key] for key in (name, keys[kind, name]) if (kind, key) in known),
            new.get((kind, keys[kind, name])),
        )
        for (kind, spelling), name in written.items()
    }

    # A named function: Django's log of a failure names it, and a partial has no name.
    def keep() -> None:
        _keep(project_id, new, names)

    # Not in the transaction of the batch: another one with the same new name would wait for it.
    transaction.on_commit(keep, robust=True)
    return names


def _known_names(project_id: int, keys: Iterable[str]) -> dict[Spelling, str]:
    rows = SeriesName.objects.filter(project_id=project_id, key__in=list(keys))
    return {
        (NameKind(kind), key): name for kind, key, name in rows.values_list("kind", "key", "name")
    }


def _keep(project_id: int, new: Mapping[Spelling, str], names: Names) -> None:
    """Add new names, and skip these spellings for some minutes unless another batch was first."""
    lost: set[str | None] = set()
    if new:
        SeriesName.objects.bulk_create(
            [
                SeriesName(project_id=project_id, kind=kind, key=key, name=name)
                for (kind, key), name in sorted(new.items())
            ],
            ignore_conflicts=True,
        )
        won = _known_names(project_id, {key for _, key in new})
        lost = {name for spelling, name in new.items() if won.get(spelling) != name}
    if len(_kept) + len(names) > MOST_KEPT:
        _kept.clear()
    until = monotonic() + KEPT_SECONDS
    kept = ((spelling, name) for spelling, name in names.items() if name not in lost)
    _kept.update({(project_id, spelling): (name, until) for spelling, name in kept})


@cache
def _aliases() -> Mapping[Spelling, str]:
    by_kind = {
        NameKind.PROVIDER: settings.FAILSOFT_PROVIDER_ALIASES,
        NameKind.MODEL: settings.FAILSOFT_MODEL_ALIASES,
    }
    return {
        (kind, spelling.strip().casefold()): name
        for kind, aliases in by_kind.items()
        for spelling, name in aliases.items()
    }
