"""Evidence about one kind of failure: since the onset, and in the week before it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from diagnostics.store.fingerprints import fault_of, tool_of
from failsoft.events import NEAREST_TOOL

MOST_PLACES = 3
NEAR_BUDGET = 0.95
"""The share of its budget that an answer cut off by it has at least."""


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """What one failure reveals about its cause."""

    output_tokens: int | None = None
    max_output_tokens: int | None = None
    tool: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[Mapping[str, Any]] = ()
    reasoning_tokens: int | None = None
    """The output tokens spent on reasoning."""
    call_error: str | None = None


class FailedCalls(NamedTuple):
    failed: int = 0
    calls: int = 0

    @property
    def share(self) -> float:
        return min(self.failed / self.calls, 1.0) if self.calls else 0.0


NO_CALLS = FailedCalls()
Place = tuple[str, str]
"""The pointer and class of an error; for a tool, an empty text and its name."""
NO_PLACES: Mapping[Place, int] = {}


@dataclass(frozen=True, slots=True)
class RisenPlace:
    """A place of an answer or a tool that fails more often than in the week before."""

    name: str
    detail: str
    """The class of error; for a tool, the nearest registered one."""
    sampled: int
    before: int


@dataclass(frozen=True, slots=True)
class Evidence:
    sampled: int = 0
    """The number of failures examined one by one, the latest ones."""
    now: FailedCalls = NO_CALLS
    before: FailedCalls = NO_CALLS
    cut_at_tokens: int | None = None
    """The median of the output tokens."""
    budget_tokens: int | None = None
    reasoning_tokens: int | None = None
    is_at_budget: bool = True
    """Whether most answers with a known budget used it up; True if none has one."""
    tools: Sequence[RisenPlace] = ()
    pointers: Sequence[RisenPlace] = ()
    call_errors: Sequence[str] = ()
    """Why calls gave no answer, the most frequent reason first."""


def gather_evidence(
    failures: Sequence[FailureEvidence],
    now: FailedCalls = NO_CALLS,
    before: FailedCalls = NO_CALLS,
    places: Mapping[Place, int] = NO_PLACES,
) -> Evidence:
    """Return the evidence for advice, from the latest failures and the week before.

    `places` are the failures of that week by place.
    """
    tools = Counter(_tool_place(failure) for failure in failures if failure.tool)
    names = Counter((_tool_place(failure), failure.tool) for failure in failures if failure.tool)
    # The most requested name of each place.
    name_of_place = {place: tool for (place, tool), _ in reversed(names.most_common())}
    nearest = {
        _tool_place(failure): str(failure.attributes[NEAREST_TOOL])
        for failure in failures
        if failure.tool and failure.attributes.get(NEAREST_TOOL)
    }
    faults = Counter(fault_of(failure.errors) for failure in failures if failure.errors)
    errors = Counter(failure.call_error for failure in failures if failure.call_error)
    ratios = [
        failure.output_tokens / failure.max_output_tokens
        for failure in failures
        if failure.output_tokens and failure.max_output_tokens
    ]

    def risen(counts: Counter[Place], name: Callable[[Place], tuple[str, str]]) -> list[RisenPlace]:
        """Return the places whose share of calls rose, by the size of the rise."""
        rises = {
            place: (now.share or 1.0) * count / len(failures)
            - FailedCalls(places.get(place, 0), before.calls).share
            for place, count in counts.items()
        }
        ranked = sorted(rises, key=lambda place: (-rises[place], place))
        up = [place for place in ranked if rises[place] > 0][:MOST_PLACES]
        return [RisenPlace(*name(at), counts[at], places.get(at, 0)) for at in up]

    return Evidence(
        sampled=len(failures),
        now=now,
        before=before,
        cut_at_tokens=_median([failure.output_tokens for failure in failures]),
        budget_tokens=_median([failure.max_output_tokens for failure in failures]),
        reasoning_tokens=_median([failure.reasoning_tokens for failure in failures]),
        is_at_budget=not ratios or median(ratios) >= NEAR_BUDGET,
        tools=risen(tools, lambda at: (name_of_place[at] or "", nearest.get(at, ""))),
        pointers=risen(faults, lambda at: (at[0] or "/", at[1] or "invalid")),
        call_errors=[error for error, _ in errors.most_common()],
    )


def _tool_place(failure: FailureEvidence) -> Place:
    return "", tool_of(failure.tool, failure.attributes.get(NEAREST_TOOL))


def _median(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value]
    return round(median(known)) if known else None
