"""Whether a trouble gets worse and worse."""

from random import Random

import pytest

from diagnostics.analysis.trend import Slot, find_rise


def buckets(shares: list[float], calls: int = 20) -> list[Slot]:
    random = Random("onset")
    return [(calls, sum(random.random() < share for _ in range(calls))) for share in shares]


def test_a_trouble_that_grows_is_told_with_its_first_and_latest_share() -> None:
    grows = [0.1 + 0.4 * hour / 40 for hour in range(40)]
    rise = find_rise(buckets(grows))
    assert rise is not None
    assert 0.1 < rise.first < 0.3 < rise.latest < 0.5


def test_a_trouble_at_one_level_hardly_ever_seems_to_grow() -> None:
    random = Random("level")
    found = 0
    for _ in range(500):
        calls = [random.randrange(1, 30) for _ in range(40)]
        slots = [(n, sum(random.random() < 0.3 for _ in range(n))) for n in calls]
        found += find_rise(slots) is not None
    assert found <= 5


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_all_or_nothing_fails_nothing_grows(share: float) -> None:
    assert find_rise(buckets([share] * 10)) is None
    assert find_rise([]) is None
