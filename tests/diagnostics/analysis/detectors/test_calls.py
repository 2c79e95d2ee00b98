"""Calls told apart by how long ago the last failure was."""

from collections.abc import Sequence
from random import Random

import pytest

from diagnostics.analysis.detectors.call_history import (
    LONG_AGO,
    SOON,
    KindCounts,
    Split,
    split_calls,
)


def one_by_one(outcomes: Sequence[int], since: int) -> tuple[Split, int]:
    counts, faults = [0, 0, 0], [0, 0, 0]
    for failed in outcomes:
        kind = 1 if since == 1 else 2 if since <= SOON else 0
        counts[kind] += 1
        faults[kind] += failed
        since = 1 if failed else min(since + 1, LONG_AGO)
    return Split(*map(KindCounts, counts, faults)), since


@pytest.mark.parametrize("since", range(1, LONG_AGO + 1))
@pytest.mark.parametrize("calls", range(14))
def test_few_calls_or_one_failure_count_as_evenly_spread(calls: int, since: int) -> None:
    for failed in range(calls + 1):
        gap, rest = divmod(calls - failed, failed + 1)
        if failed > 1 and gap:
            continue
        spread = [0] * (gap + rest) + ([1] + [0] * gap) * failed
        assert split_calls(calls, failed, since) == one_by_one(spread, since)


@pytest.mark.parametrize(("calls", "failed"), [(20, 3), (60, 10), (200, 60), (900, 9)])
def test_several_failures_among_many_count_as_orders_do_on_average(calls: int, failed: int) -> None:
    random = Random(calls)
    outcomes = [1] * failed + [0] * (calls - failed)
    total, orders = Split(), 400
    for _ in range(orders):
        random.shuffle(outcomes)
        total = total.plus(one_by_one(outcomes, LONG_AGO)[0])
    for kind, mean in zip(split_calls(calls, failed, LONG_AGO)[0], total, strict=True):
        assert kind.calls == pytest.approx(mean.calls / orders, abs=1.5, rel=0.05)
        assert kind.failed == pytest.approx(mean.failed / orders, abs=1.0, rel=0.1)


@pytest.mark.parametrize("calls", [2, 7, 31, 100])
def test_all_calls_and_failures_are_counted_once(calls: int) -> None:
    for failed in range(calls + 1):
        split, since = split_calls(calls, failed, LONG_AGO)
        assert split.calls == pytest.approx(calls)
        assert sum(kind.failed for kind in split) == pytest.approx(failed)
        assert all(0 <= kind.failed <= kind.calls for kind in split)
        assert 1 <= since <= LONG_AGO
