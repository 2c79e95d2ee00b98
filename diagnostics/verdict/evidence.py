"""What was seen of one kind of failure since the onset, and in the week before it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from diagnostics.store.fingerprints import fault_of, tool_of
from failsoft.events import NEAREST_TOOL

MOST_PLACES = 3
NEAR_BUDGET = 0.95
"""Of its budget, what an answer has at least that was cut off by it."""


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """What one failure says of its cause."""

    output_tokens: int | None = None
    max_output_tokens: int | None = None
    tool: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[Mapping[str, Any]] = ()
    reasoning_tokens: int | None = None
    """The part of the output tokens that was spent on reasoning."""
    call_error: str | None = None


class FailedCalls(NamedTuple):
    """Calls that failed in one way, of all calls."""

    failed: int = 0
    calls: int = 0

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return min(self.failed / self.calls, 1.0) if self.calls else 0.0


NO_CALLS = FailedCalls()
Place = tuple[str, str]
"""Pointer and sort of fault of an answer; of a tool, nothing and its name."""


@dataclass(frozen=True, slots=True)
class EarlierFailures:
    """One kind of failure in the week before the onset: of all calls, and by place."""

    counted: FailedCalls = NO_CALLS
    places: Mapping[Place, int] = field(default_factory=dict)


NOTHING_EARLIER = EarlierFailures()


@dataclass(frozen=True, slots=True)
class RisenPlace:
    """A place of an answer or a tool that fails more often than in the week before."""

    name: str
    detail: str
    """The sort of fault; of a tool, the nearest one that is registered."""
    sampled: int
    before: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of the top kind of failure, where it was told."""

    sampled: int = 0
    """The failures that were looked at one by one, the latest ones."""
    now: FailedCalls = NO_CALLS
    before: FailedCalls = NO_CALLS
    cut_at_tokens: int | None = None
    """The median of the output tokens."""
    budget_tokens: int | None = None
    reasoning_tokens: int | None = None
    is_at_budget: bool = True
    """Whether most answers with a known budget have used it up; True where none has one."""
    tools: Sequence[RisenPlace] = ()
    pointers: Sequence[RisenPlace] = ()
    call_errors: Sequence[str] = ()
    """Why calls gave no answer, the most frequent reason first."""


def gather(
    failures: Sequence[FailureEvidence],
    now: FailedCalls = NO_CALLS,
    earlier: EarlierFailures = NOTHING_EARLIER,
) -> Evidence:
    """Return what advice rests on, from the latest failures and what was usual before."""
    tools = Counter(_tool_place(one) for one in failures if one.tool)
    named = Counter((_tool_place(one), one.tool) for one in failures if one.tool)
    # The name that was asked for most, beside the nearest.
    asked = {place: tool for (place, tool), _ in reversed(named.most_common())}
    nearest = {
        _tool_place(one): str(one.attributes[NEAREST_TOOL])
        for one in failures
        if one.tool and one.attributes.get(NEAREST_TOOL)
    }
    faults = Counter(fault_of(one.errors) for one in failures if one.errors)
    ratios = [
        one.output_tokens / one.max_output_tokens
        for one in failures
        if one.output_tokens and one.max_output_tokens
    ]
    return Evidence(
        sampled=len(failures),
        now=now,
        before=earlier.counted,
        cut_at_tokens=_median([one.output_tokens for one in failures]),
        budget_tokens=_median([one.max_output_tokens for one in failures]),
        reasoning_tokens=_median([one.reasoning_tokens for one in failures]),
        is_at_budget=not ratios or median(ratios) >= NEAR_BUDGET,
        tools=[
            RisenPlace(asked[place] or "", nearest.get(place, ""), seen, before)
            for place, seen, before in _risen(tools, len(failures), now, earlier)
        ],
        pointers=[
            RisenPlace(place[0] or "/", place[1] or "invalid", seen, before)
            for place, seen, before in _risen(faults, len(failures), now, earlier)
        ],
        call_errors=[
            why
            for why, _ in Counter(
                one.call_error for one in failures if one.call_error
            ).most_common()
        ],
    )


def _tool_place(one: FailureEvidence) -> Place:
    return "", tool_of(one.tool, one.attributes.get(NEAREST_TOOL))


def _risen(
    seen: Counter[Place], sampled: int, now: FailedCalls, earlier: EarlierFailures
) -> list[tuple[Place, int, int]]:
    """Return the places whose share of the calls rose, the one that rose most first."""
    share = now.share or 1.0

    def rise(place: Place) -> float:
        before = FailedCalls(earlier.places.get(place, 0), earlier.counted.calls)
        return share * seen[place] / sampled - before.share

    risen = sorted((place for place in seen if rise(place) > 0), key=lambda one: (-rise(one), one))
    return [(one, seen[one], earlier.places.get(one, 0)) for one in risen[:MOST_PLACES]]


def _median(values: Sequence[int | None]) -> int | None:
    told = [value for value in values if value]
    return round(median(told)) if told else None
