"""The critical path and the root causes of a run, read from the rows of its steps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class StepTrace(NamedTuple):
    """The outcome and timing of one step; `ok` is None until the step is final.

    `called_until` is the end of the tool call in seconds since 1970; None when the tool was
    not called or has not ended. A page reads thousands of these, and a number is read 40
    times as fast as a date.
    """

    position: int
    step_id: str
    dependencies: Sequence[str]
    ok: bool | None
    skipped: bool | None
    called_until: float | None = None


def find_critical_path(steps: Iterable[StepTrace]) -> list[int]:
    """Return the positions of the chain of steps that decided when the run ended.

    The chain goes from the step that ended last to its dependency that ended last, and so
    on. Only steps whose tool was called and has ended count.
    """
    ended = {step.step_id: step for step in steps if step.called_until is not None}
    path: dict[int, None] = {}
    step = _last(ended.values())
    while step is not None and step.position not in path:
        path[step.position] = None
        step = _last(ended[name] for name in step.dependencies if name in ended)
    return list(path)[::-1]


def find_root_causes(steps: Iterable[StepTrace]) -> dict[int, int]:
    """Return the position of the root cause of each step that is not ok.

    A failed step is its own root cause; so is a step that was skipped for another reason
    than a dependency, such as a cancelled run.
    """
    not_ok = {step.step_id: step for step in steps if step.ok is False}
    roots: dict[int, int] = {}
    for step in not_ok.values():
        chain = _chain(step, not_ok, roots)
        root = roots.get(chain[-1], chain[-1])
        roots.update(dict.fromkeys(chain, root))
    return roots


def _chain(step: StepTrace, not_ok: Mapping[str, StepTrace], roots: Mapping[int, int]) -> list[int]:
    """Follow the first dependency that is not ok, up to a root cause."""
    chain = {step.position: None}
    blocker = _blocker(step, not_ok)
    while blocker is not None and blocker.position not in chain:
        chain[blocker.position] = None
        if blocker.position in roots:
            break
        blocker = _blocker(blocker, not_ok)
    return list(chain)


def _blocker(step: StepTrace, not_ok: Mapping[str, StepTrace]) -> StepTrace | None:
    if not step.skipped:
        return None
    blockers = [not_ok[name] for name in step.dependencies if name in not_ok]
    return next((other for other in blockers if not other.skipped), next(iter(blockers), None))


def _last(steps: Iterable[StepTrace]) -> StepTrace | None:
    return max(steps, key=lambda step: (step.called_until, step.position), default=None)
