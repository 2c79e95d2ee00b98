"""A fast path of validation: one pass that accepts most valid plans.

Only acceptance is final. Every other plan, valid or not, is checked by the rules of
`failsoft.plans.validation`, which also report the violations.
"""

import math
import re
from typing import Any

from failsoft.plans.contract import (
    CONTRACT_VERSION,
    MAX_DEPENDENCIES,
    MAX_NODES,
    MAX_STEPS,
    MAX_STRING_BYTES,
    STEP_KEYS,
    TOOL_KEYS,
)
from failsoft.plans.ordering import order_steps, referenced_step

_MAJOR = CONTRACT_VERSION.partition(".")[0] + "."
_NAMED = re.compile(r"(?!step_|__)[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBERED = re.compile(r"step_([1-9][0-9]{0,4})\Z")
# A text of this many characters is within the limit in UTF-8, with four bytes for each.
_SHORT = MAX_STRING_BYTES // 4
_LARGE = 1 << 53
_PLAIN_DEPTH = 8
_PLACES = tuple(map(str, range(64)))
_NOTHING: list[Any] = []
_NONE: dict[str, Any] = {}
# The most nodes of a step besides its dependencies and arguments.
_NODES_OF_STEP = len(STEP_KEYS) + len(TOOL_KEYS) + 1


def is_plainly_valid(payload: object) -> bool:
    """Whether a payload is certainly valid; False means unknown."""
    if type(payload) is not dict or not _is_plain_version(payload):
        return False
    steps = payload.get("steps")
    if type(steps) is not list or not 0 < len(steps) <= MAX_STEPS:
        return False
    reading = _Reading()
    return all(map(reading.take, steps)) and reading.is_whole(steps)


def _is_plain_version(payload: dict[str, Any]) -> bool:
    if len(payload) == 1:
        return True
    version = payload.get("contract_version", _MAJOR)
    return len(payload) == 2 and type(version) is str and version.startswith(_MAJOR)


class _Reading:
    """The ids that the steps so far declare and depend on."""

    __slots__ = ("forward", "index_of", "nodes", "numbered", "strays")

    def __init__(self) -> None:
        self.index_of: dict[str, int] = {}
        # Dependencies on steps that are declared later.
        self.forward: list[tuple[int, str]] = []
        self.nodes = 0
        self.numbered = 0
        # Numbers of `step_k` ids that are out of sequence.
        self.strays: list[int] = []

    def take(self, step: Any) -> bool:  # noqa: ANN401 - any JSON
        """Read one step; return False when it is not certainly valid."""
        if type(step) is not dict or not step.keys() <= STEP_KEYS:
            return False
        step_id, title = step.get("step_id"), step.get("title")
        index_of = self.index_of
        if step_id == f"step_{self.numbered + 1}":
            self.numbered += 1
        elif not self._is_plain_id(step_id):
            return False
        assert isinstance(step_id, str)  # noqa: S101 - both branches checked it
        if step_id in index_of or not self._waits_plainly(step, len(index_of)):
            return False
        index_of[step_id] = len(index_of)
        if title is not None and (type(title) is not str or len(title) > _SHORT):
            return False
        tool = step.get("tool")
        if type(tool) is dict:
            if "args" in step or not tool.keys() <= TOOL_KEYS:
                return False
            return self._is_plain_call(tool.get("name"), tool.get("args", _NONE))
        return self._is_plain_call(tool, step.get("args", _NONE))

    def _waits_plainly(self, step: dict[str, Any], index: int) -> bool:
        dependencies = step.get("dependencies", _NOTHING)
        if type(dependencies) is not list or len(dependencies) > MAX_DEPENDENCIES:
            return False
        for dependency in dependencies:
            if type(dependency) is not str:
                return False
            if dependency not in self.index_of:
                self.forward.append((index, dependency))
        self.nodes += len(dependencies) + _NODES_OF_STEP
        return True

    def _is_plain_call(self, name: object, args: Any) -> bool:  # noqa: ANN401 - any JSON
        """Whether the tool has a name and its arguments are flat and short."""
        if type(name) is not str or len(name) > _SHORT or not name.strip():
            return False
        if type(args) is not dict:
            return False
        return self._are_plain(args, 2)

    def _are_plain(self, values: dict[str, Any], depth: int) -> bool:
        self.nodes += len(values)
        for key, value in values.items():
            kind = type(value)
            if type(key) is not str or len(key) > _SHORT:
                return False
            if kind is str:
                if len(value) > _SHORT or (value[:1] == "$" and not self._refer(value)):
                    return False
            elif kind is int:
                if not -_LARGE < value < _LARGE:
                    return False
            elif not (value is None or kind is bool or self._is_other(value, depth)):
                return False
        return True

    def _is_other(self, value: Any, depth: int) -> bool:  # noqa: ANN401 - JSON or not
        if type(value) is float:
            return math.isfinite(value)
        if depth > _PLAIN_DEPTH:
            return False
        if type(value) is list:
            # Long lists are rare, and left to the full rules.
            return len(value) <= len(_PLACES) and self._are_plain(
                dict(zip(_PLACES, value, strict=False)), depth + 1
            )
        return type(value) is dict and self._are_plain(value, depth + 1)

    def _refer(self, text: str) -> bool:
        """Whether a text is no reference, or one to an earlier step."""
        step_id = referenced_step(text)
        if step_id is None:
            return True
        return self.index_of.get(step_id, len(self.index_of)) < len(self.index_of) - 1

    def _is_plain_id(self, step_id: object) -> bool:
        if type(step_id) is not str or len(step_id) > _SHORT:
            return False
        match = _NUMBERED.match(step_id)
        if match is not None:
            self.strays.append(int(match[1]))
            return True
        return _NAMED.match(step_id) is not None

    def is_whole(self, steps: list[dict[str, Any]]) -> bool:
        """Whether ids, sequence and dependencies are consistent, after all steps."""
        if self.nodes + len(steps) > MAX_NODES:
            return False
        # The numbers are unique, so the sequence has no gap if none exceeds their count.
        if self.strays and max(self.strays) > self.numbered + len(self.strays):
            return False
        return not self.forward or self._is_acyclic(steps)

    def _is_acyclic(self, steps: list[dict[str, Any]]) -> bool:
        index_of = self.index_of
        if any(index_of.get(name, index) == index for index, name in self.forward):
            return False
        edges = [[index_of[name] for name in step.get("dependencies", _NOTHING)] for step in steps]
        return not order_steps(edges).cycle_of
