"""Since when: the moment that divides usual from worse."""

from random import Random

from diagnostics.core.verdict.onset import Count, find_onset


def buckets(shares: list[float], calls: int = 20) -> list[Count]:
    random = Random("onset")
    return [
        Count(calls, sum(random.random() < share for _ in range(calls)))
        for share in shares
    ]


def test_the_onset_is_where_the_rate_rose() -> None:
    found = find_onset(buckets([0.02] * 60 + [0.35] * 12), 0.02)
    assert found is not None
    assert abs(found.at - 60) <= 1
    assert found.low <= 60 <= found.high


def test_little_traffic_gives_a_wide_interval() -> None:
    busy = find_onset(buckets([0.02] * 60 + [0.2] * 12, 50), 0.02)
    quiet = find_onset(buckets([0.02] * 60 + [0.2] * 12, 4), 0.02)
    assert busy is not None
    assert quiet is not None
    assert busy.high - busy.low < quiet.high - quiet.low


def test_what_is_over_or_never_was_has_no_strong_onset() -> None:
    healthy = find_onset(buckets([0.02] * 72), 0.03)
    assert healthy is None or healthy.gain < 4


def test_empty_buckets_are_no_onset() -> None:
    assert find_onset([], 0.02) is None
    assert find_onset([Count(0, 0)] * 9, 0.02) is None
    found = find_onset([*[Count(0, 0)] * 5, Count(20, 10), Count(0, 0)], 0.02)
    assert found is not None
    assert found.at == 5
