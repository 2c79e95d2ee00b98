"""The table of conventions: where each has the facts of a model call (`conventions.toml`)."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

TABLE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("conventions.toml").read_text(encoding="utf-8")
)
NOT_FIELDS = frozenset({"name", "marks", "scopes"})


class Key(NamedTuple):
    """An attribute, and the path in its JSON."""

    attribute: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Convention:
    """The keys of one convention, by field of a call."""

    name: str
    marks: tuple[str, ...]
    scopes: tuple[str, ...]
    keys: Mapping[str, tuple[Key, ...]]

    def is_used(self, attributes: Sequence[str], scope: str) -> bool:
        """Whether a span may have facts of this convention."""
        return (
            not self.marks
            or (bool(self.scopes) and scope.startswith(self.scopes))
            or (bool(attributes) and any(key.startswith(self.marks) for key in attributes))
        )


def _key(text: str) -> Key:
    attribute, _, path = text.partition(" > ")
    return Key(attribute, tuple(path.split("."))) if path else Key(attribute)


CONVENTIONS = tuple(
    Convention(
        row["name"],
        tuple(row.get("marks", ())),
        tuple(row.get("scopes", ())),
        {field: tuple(map(_key, keys)) for field, keys in row.items() if field not in NOT_FIELDS},
    )
    for row in TABLE["conventions"]
)
MARKS = tuple(mark for row in CONVENTIONS for mark in row.marks)
OPERATIONS: Mapping[str, list[str]] = TABLE["operations"]
SIGNS = tuple(map(_key, OPERATIONS["signs"]))
MODELS = ("model", "served_model", "named_model")
MODEL_KEYS = tuple(
    dict.fromkeys(key for field in MODELS for row in CONVENTIONS for key in row.keys.get(field, ()))
)
READ = frozenset(
    {key.attribute for row in CONVENTIONS for keys in row.keys.values() for key in keys}
    | {*OPERATIONS["keys"], *(key.attribute for key in SIGNS)}
    | {key for keys in TABLE["read"].values() for key in keys}
)
"""The attributes that are read; all others are dropped."""
