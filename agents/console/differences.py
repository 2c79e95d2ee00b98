"""What changed from one answer of a model to the next.

1. Both texts are read by the recovering parser. When both hold a value, the values are
   compared: one change for each JSON pointer (RFC 6901). Lists whose items name themselves
   (`step_id`, `id`, `name`) are compared item by item of the same name, others by place.
2. Otherwise the texts are compared line by line, as `diff -u` does.

Texts are redacted previews: no value is shown that the page does not show already.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Literal

from failsoft.json_values import escape_pointer
from failsoft.parsing import RefusedAnswer, recover

ChangeKind = Literal["added", "removed", "changed"]
LineKind = Literal["same", "removed", "added", "gap"]
NAMES = ("step_id", "id", "name")
MOST_CHANGES = 40
MOST_LINES = 400
LINES_SHOWN = 80
AROUND = 2
LONGEST_VALUE = 160
LONGEST_LINE = 200
DEEPEST = 24


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One place that differs; a value of None is not there."""

    pointer: str
    kind: ChangeKind
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """Either changes of a value, or lines of a text; `left_out` counts what is not shown."""

    is_structural: bool
    changes: tuple[ValueChange, ...] = ()
    lines: tuple[DiffLine, ...] = ()
    left_out: int = 0

    @property
    def is_same(self) -> bool:
        """Whether the values are equal; without values, whether the texts are."""
        return not self.changes and not self.lines and not self.left_out


def difference(before: str, after: str) -> AnswerDifference:
    """Compare two answers; any texts, never raises."""
    if before == after:
        return AnswerDifference(False)
    one, other = recover(before), recover(after)
    if isinstance(one, RefusedAnswer) or isinstance(other, RefusedAnswer):
        return _of_lines(before, after)
    lines = list(islice(_compare("", one.value, other.value, 0), MOST_LINES))
    shown = tuple(lines[:MOST_CHANGES])
    return AnswerDifference(True, changes=shown, left_out=len(lines) - len(shown))


def _compare(pointer: str, before: object, after: object, depth: int) -> Iterator[ValueChange]:
    if depth < DEEPEST and isinstance(before, dict) and isinstance(after, dict):
        yield from _compare_objects(pointer, before, after, depth)
    elif depth < DEEPEST and isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(pointer, before, after, depth)
    elif type(before) is not type(after) or before != after:
        yield ValueChange(pointer, "changed", _written(before), _written(after))


def _compare_objects(
    pointer: str, before: Mapping[str, Any], after: Mapping[str, Any], depth: int
) -> Iterator[ValueChange]:
    for key in dict.fromkeys([*before, *after]):
        place = f"{pointer}/{escape_pointer(key)}"
        if key not in after:
            yield ValueChange(place, "removed", _written(before[key]), None)
        elif key not in before:
            yield ValueChange(place, "added", None, _written(after[key]))
        else:
            yield from _compare(place, before[key], after[key], depth + 1)


def _compare_lists(
    pointer: str, before: Sequence[Any], after: Sequence[Any], depth: int
) -> Iterator[ValueChange]:
    name = next((name for name in NAMES if _all_named(name, before, after)), None)
    keys_before = [item[name] if name else place for place, item in enumerate(before)]
    keys_after = [item[name] if name else place for place, item in enumerate(after)]
    places = {key: place for place, key in enumerate(keys_after)}
    for place, key in enumerate(keys_before):
        if key not in places:
            removed = _written(before[place])
            yield ValueChange(f"{pointer}/{place}", "removed", removed, None)
            continue
        at = places[key]
        yield from _compare(f"{pointer}/{at}", before[place], after[at], depth + 1)
    known = set(keys_before)
    for key, place in places.items():
        if key not in known:
            yield ValueChange(f"{pointer}/{place}", "added", None, _written(after[place]))


def _all_named(name: str, *lists: Sequence[Any]) -> bool:
    """Whether every item has a name of its own under this key."""
    for items in lists:
        if not items or not all(isinstance(item, dict) for item in items):
            return False
        names = [item.get(name) for item in items]
        if not all(isinstance(text, str) for text in names):
            return False
        if len(set(names)) != len(names):
            return False
    return True


def _of_lines(before: str, after: str) -> AnswerDifference:
    old, new = before.split("\n")[:MOST_LINES], after.split("\n")[:MOST_LINES]
    lines = list(_lines(old, new))
    shown = tuple(lines[:LINES_SHOWN])
    uncompared = max(before.count("\n"), after.count("\n")) + 1 - MOST_LINES
    left_out = len(lines) - len(shown) + max(uncompared, 0)
    return AnswerDifference(False, lines=shown, left_out=left_out)


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    groups = SequenceMatcher(None, old, new).get_grouped_opcodes(AROUND)
    for number, group in enumerate(groups):
        if number or group[0][1]:
            yield DiffLine("gap", f"line {group[0][1] + 1}")
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                yield from (DiffLine("same", _cut(text)) for text in old[start:end])
                continue
            yield from (DiffLine("removed", _cut(text)) for text in old[start:end])
            yield from (DiffLine("added", _cut(text)) for text in new[new_start:new_end])


def _written(value: object) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")), LONGEST_VALUE)


def _cut(text: str, most: int = LONGEST_LINE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
