"""What steps refer to, and the order that follows: Kahn's algorithm, with cycles, no recursion.

`$step_1.output.field` is the output of another step. Only a whole string is a reference:
`$<step id>.output`, then any number of `.<key>` or `.<index>`. A leading `$$` means a literal
`$`. Nothing is evaluated: a reference only indexes objects and arrays.
"""

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from failsoft.plans.violations import Link, Place, parts_of, quote

_MAX_CHARACTERS = 1_000
_REFERENCE = re.compile(r"\$(?P<step>[^$].*?)\.output(?P<path>(?:\.[^.]+)*)\Z", re.DOTALL)

_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,6})\Z")

OutputOf = Callable[[str], JsonValue]


class UnresolvedReferenceError(Exception):
    """A reference names a step or a field that does not exist."""


def referenced_step(text: str) -> str | None:
    match = _match(text)
    return match["step"] if match else None


def find_dollars(value: JsonValue) -> list[str]:
    """Return the strings of the arguments that begin with `$`, as every reference does."""
    texts: list[str] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if item[:1] == "$":
                texts.append(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return texts


def find_references(value: JsonValue, place: Place = ()) -> list[tuple[Place, str]]:
    """Return the place and the step id of each reference in the arguments, in their order."""
    references: list[tuple[Place, str]] = []
    pending: list[tuple[Link | None, JsonValue]] = [(None, value)]
    while pending:
        link, item = pending.pop()
        if isinstance(item, str):
            if step_id := referenced_step(item):
                references.append(((*place, *parts_of(link)), step_id))
            continue
        items = enumerate(item) if isinstance(item, list) else ()
        for key, inner in item.items() if isinstance(item, dict) else items:
            if isinstance(inner, (dict, list)) or (isinstance(inner, str) and inner[:1] == "$"):
                pending.append(((link, key), inner))
    return references[::-1]


def resolve_references(value: JsonValue, output_of: OutputOf) -> JsonValue:
    """Return the arguments with each reference replaced by its value.

    `output_of` returns the output of a step or raises UnresolvedReferenceError, which is also
    raised when a path does not exist. Depth is bounded by the contract.
    """
    if isinstance(value, str):
        return _resolve(value, output_of) if value.startswith("$") else value
    if isinstance(value, dict):
        return {key: resolve_references(item, output_of) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve_references(item, output_of) for item in value]
    return value


def _match(text: str) -> re.Match[str] | None:
    if not text.startswith("$") or len(text) > _MAX_CHARACTERS:
        return None
    return _REFERENCE.match(text)


def _resolve(text: str, output_of: OutputOf) -> JsonValue:
    match = _match(text)
    if match is None:
        return text[1:] if text.startswith("$$") and _match(text[1:]) else text
    value = output_of(match["step"])
    for key in match["path"].split(".")[1:]:
        value = _enter(value, key, text)
    return value


def _enter(value: JsonValue, key: str, text: str) -> JsonValue:
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) and _INDEX.match(key) and int(key) < len(value):
        return value[int(key)]
    raise UnresolvedReferenceError(
        f"The arguments refer to {quote(text)}, but the output has no {quote(key)}."
    )


_Graph = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Ordering:
    """Every step in an order that respects its dependencies, and the cycles among them.

    `order` contains all indices, those of cycles too. `cycle_of` maps each step of a cycle to
    that cycle, as a path of indices; steps that only depend on a cycle are not in it.
    """

    order: list[int]
    cycle_of: dict[int, list[int]] = field(default_factory=dict)


def order_steps(dependencies: _Graph) -> Ordering:
    """Return the order of steps; `dependencies[i]` are the indices that step i waits for.

    Ready steps are taken in payload order. A step must not list itself. Linear in steps and
    dependencies, except for the choice among ready steps.
    """
    if all(not waits_for or max(waits_for) < index for index, waits_for in enumerate(dependencies)):
        return Ordering(list(range(len(dependencies))))
    order = _kahn(dependencies)
    if len(order) == len(dependencies):
        return Ordering(order)
    return _order_with_cycles(dependencies, order)


class Frontier:
    """The ready steps, in payload order; finishing a step makes its dependents ready."""

    def __init__(self, dependents: _Graph, awaited: Mapping[int, int]) -> None:
        self._dependents = dependents
        self._awaited = dict(awaited)
        self._ready = [index for index, count in awaited.items() if count == 0]
        heapq.heapify(self._ready)

    def __bool__(self) -> bool:
        return bool(self._ready)

    def take(self) -> int:
        return heapq.heappop(self._ready)

    def finish(self, index: int) -> None:
        """Mark a step as finished; dependents without other open dependencies become ready."""
        for dependent in self._dependents[index]:
            open_count = self._awaited.get(dependent)
            if open_count is not None:
                self._awaited[dependent] = open_count - 1
                if open_count == 1:
                    heapq.heappush(self._ready, dependent)


def _kahn(dependencies: _Graph) -> list[int]:
    awaited = {index: len(waits_for) for index, waits_for in enumerate(dependencies)}
    frontier = Frontier(reverse(dependencies), awaited)
    order: list[int] = []
    while frontier:
        order.append(frontier.take())
        frontier.finish(order[-1])
    return order


def reverse(dependencies: _Graph) -> list[list[int]]:
    dependents: list[list[int]] = [[] for _ in dependencies]
    for index, waits_for in enumerate(dependencies):
        for dependency in waits_for:
            dependents[dependency].append(index)
    return dependents


def _order_with_cycles(dependencies: _Graph, done: list[int]) -> Ordering:
    """Return the order of steps with the dependencies inside each cycle removed."""
    group_of = _groups(dependencies, set(range(len(dependencies))).difference(done))
    acyclic = [
        _without_group(waits_for, group_of.get(index), group_of)
        for index, waits_for in enumerate(dependencies)
    ]
    members: dict[int, list[int]] = {}
    for index in sorted(group_of):
        members.setdefault(group_of[index], []).append(index)
    cycle_of: dict[int, list[int]] = {}
    for group in members.values():
        if len(group) > 1:
            cycle_of |= dict.fromkeys(group, _walk(dependencies, group))
    return Ordering(_kahn(acyclic), cycle_of)


def _without_group(
    waits_for: Sequence[int], group: int | None, group_of: dict[int, int]
) -> Sequence[int]:
    if group is None:
        return waits_for
    return [other for other in waits_for if group_of.get(other) != group]


def _walk(dependencies: _Graph, group: list[int]) -> list[int]:
    """Return one cycle of a strongly connected group, reached from its first member."""
    inside = set(group)
    position_of: dict[int, int] = {}
    path: list[int] = []
    index = group[0]
    while index not in position_of:
        position_of[index] = len(path)
        path.append(index)
        index = next(other for other in dependencies[index] if other in inside)
    return path[position_of[index] :]


def _groups(dependencies: _Graph, among: set[int]) -> dict[int, int]:
    """Map each index to its strongly connected group (Tarjan, own stack)."""
    discovery_of: dict[int, int] = {}
    low: dict[int, int] = {}
    group_of: dict[int, int] = {}
    open_indices: list[int] = []
    for root in sorted(among):
        work = [(root, 0)] if root not in discovery_of else []
        while work:
            index, position = work.pop()
            if index not in discovery_of:
                discovery_of[index] = low[index] = len(discovery_of)
                open_indices.append(index)
            has_descended = False
            for child_position in range(position, len(dependencies[index])):
                other = dependencies[index][child_position]
                if other not in among or other in group_of:
                    continue
                if other not in discovery_of:
                    work += [(index, child_position), (other, 0)]
                    has_descended = True
                    break
                low[index] = min(low[index], low[other])
            if not has_descended and low[index] == discovery_of[index]:
                while (member := open_indices.pop()) != index:
                    group_of[member] = index
                group_of[index] = index
    return group_of
