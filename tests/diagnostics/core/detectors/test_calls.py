"""Calls told apart by how long ago the last failure was."""

from collections.abc import Sequence

import pytest

from diagnostics.core.detectors.calls import LONG_AGO, SOON, Kind, Split, split_calls


def one_by_one(outcomes: Sequence[int], since: int) -> tuple[Split, int]:
    counts, faults = [0, 0, 0], [0, 0, 0]
    for failed in outcomes:
        kind = 1 if since == 1 else 2 if since <= SOON else 0
        counts[kind] += 1
        faults[kind] += failed
        since = 1 if failed else min(since + 1, LONG_AGO)
    return Split(*map(Kind, counts, faults)), since


@pytest.mark.parametrize("since", range(1, LONG_AGO + 1))
@pytest.mark.parametrize("calls", range(14))
def test_a_bucket_counts_as_its_calls_evenly_spread(calls: int, since: int) -> None:
    for failed in range(calls + 1):
        gap, rest = divmod(calls - failed, failed + 1)
        spread = [0] * (gap + rest) + ([1] + [0] * gap) * failed
        assert split_calls(calls, failed, since) == one_by_one(spread, since)


def test_all_calls_are_counted_once() -> None:
    split, _ = split_calls(100, 7, LONG_AGO)
    assert split.calls == 100
    assert sum(kind.failed for kind in split) == 7
