"""The provider and model that an event counts under: one name for all its spellings.

The first spelling that a project sends becomes the name, and later ones join it. What a process
saw a few minutes ago costs no statement.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import transaction

from diagnostics.ingest.models import SeriesName
from diagnostics.ingest.names import NameKind, key_of, plain
from failsoft.events import name_served

KEPT_SECONDS = 300.0
MOST_KEPT = 20_000
Spelling = tuple[NameKind, str]
Names = dict[Spelling, str | None]
_kept: dict[tuple[int, Spelling], tuple[str | None, float]] = {}


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
            row["served_model"] = _served_model(row["model"], row["served_model"])
            row["served"] = name_served(row["model"], row["served_model"], row["upstream"])


def _served_model(model: str | None, served: str | None) -> str | None:
    if model is None or served is None or model == served:
        return served
    is_same = key_of(NameKind.MODEL, model) == key_of(NameKind.MODEL, served)
    return model if is_same else served


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
