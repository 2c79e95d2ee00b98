"""Reads answers of models from TOML files and compares what became of them with what is right.

A file holds `[kind]` tables with a `rule`, and in each `[kind.case]` tables. The head of each file
lists the fields of its cases.
"""

import json
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from failsoft.parsing.tracing import same


class Outcome(StrEnum):
    """What a case came to."""

    RIGHT = "right"
    WRONG_VALUE = "wrong value"
    AS_SUCCESS = "counted as success"
    WRONG_KIND = "wrong kind"
    REFUSED = "refused"
    CRASH = "crash"


@dataclass(frozen=True)
class Answer:
    """One answer of a model and what may become of it."""

    name: str
    layer: str
    told: dict[str, Any]

    @property
    def kind(self) -> str:
        """The kind of trouble, which is the first part of the name."""
        return self.name.partition(".")[0]

    @property
    def values(self) -> list[Any]:
        """The readings that are right."""
        written = [*self.told.get("values", ()), *self._single()]
        return [json.loads(value) for value in written]

    def _single(self) -> list[str]:
        return [self.told[name] for name in ("value", "steps", "calls_read") if name in self.told]


@dataclass(frozen=True)
class Refusal:
    """A refusal, with its kind."""

    kind: str


@dataclass(frozen=True)
class Finding:
    """A case and what it came to."""

    answer: Answer
    outcome: Outcome
    got: object

    def __str__(self) -> str:
        return f"{self.answer.name} ({self.answer.layer}): {self.outcome}, got {self.got!r:.300}"


def read_answers(file: Path, layer: str = "parse") -> list[Answer]:
    """Read every case of a file, in its order."""
    kinds = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        Answer(f"{kind}.{name}", cases.get("layer", layer), told)
        for kind, cases in kinds.items()
        for name, told in cases.items()
        if isinstance(told, dict)
    ]


def run(answers: Iterable[Answer], read: Callable[[Answer], object]) -> list[Finding]:
    """Read each answer and judge what came of it; an exception is a finding, too."""
    return [_judged(answer, read) for answer in answers]


def unexpected(findings: Iterable[Finding]) -> list[str]:
    """Return all that is not right, and refusals that are known but no longer so.

    A case with `known` says why it is refused, or refused as another kind.
    """
    return [str(one) for one in findings if one.outcome not in _expected(one.answer)]


def _expected(answer: Answer) -> tuple[Outcome, ...]:
    return (Outcome.REFUSED, Outcome.WRONG_KIND) if "known" in answer.told else (Outcome.RIGHT,)


def _judged(answer: Answer, read: Callable[[Answer], object]) -> Finding:
    try:
        got = read(answer)
    except Exception as error:  # noqa: BLE001 - no answer may raise, whatever it raises
        return Finding(answer, Outcome.CRASH, error)
    return Finding(answer, _compare(answer, got), got)


def _compare(answer: Answer, got: object) -> Outcome:
    values, refusals = answer.values, answer.told.get("refused", ())
    if not isinstance(got, Refusal):
        is_right = any(same(got, value) for value in values)
        return Outcome.RIGHT if is_right else Outcome.WRONG_VALUE
    if got.kind in refusals:
        return Outcome.RIGHT
    return Outcome.WRONG_KIND if refusals else Outcome.REFUSED
