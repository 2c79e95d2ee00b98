"""Calls and failing calls of a row of counts, in whichever way agents told them.

Some post every call, some post failing calls and how runs ended, some only how runs ended.
Rows that are added up may hold all three.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from diagnostics.core.rollups import FAILURE_KINDS
from diagnostics.core.verdict.cells import TRANSPORT

ENDS = ("attempts", "succeeded", "runs", "degraded", "repaired", "provider_failed")
COUNTED: tuple[str, ...] = (*ENDS, *FAILURE_KINDS)
"""The measures that are asked for, in their order."""
UNSAID = "other_invalid"
"""Runs that were posted without their calls do not say which kind of failure it was."""
UNANSWERED = "call_provider_error"
"""What a run met at least that ended because its provider failed."""


class Counted(NamedTuple):
    """Calls, failing ones by kind, runs and degraded runs."""

    calls: int
    failures: Mapping[str, int]
    runs: int
    degraded: int


def count_calls(measures: Sequence[int]) -> Counted:
    """Count calls, those that nobody told included.

    A run that ended well had one good call; one that was repaired or degraded had one at
    least that failed.
    """
    attempts, succeeded, runs, degraded, repaired, unanswered, *kinds = measures
    failures = {k: seen for k, seen in zip(FAILURE_KINDS, kinds, strict=True) if seen}
    silent = sum(failures.get(kind, 0) for kind in TRANSPORT)
    good = max(runs - degraded - succeeded, 0)
    untold = {UNANSWERED: max(unanswered - silent, 0)}
    told = sum(failures.values()) + untold[UNANSWERED]
    untold[UNSAID] = max(degraded + min(repaired, good) - told, 0)
    for kind, missing in untold.items():
        if missing:
            failures[kind] = failures.get(kind, 0) + missing
    calls = attempts + good + sum(untold.values())
    return Counted(calls, failures, runs, degraded)
