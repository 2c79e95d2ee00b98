"""Since when: the moment that divides usual from worse."""

from random import Random

import pytest

from diagnostics.analysis.onset import Slot, find_onset, find_rise

KNOWN = 2_000


def buckets(shares: list[float], calls: int = 20, usual: float = 0.02) -> list[Slot]:
    random = Random("onset")
    return [
        Slot(calls, sum(random.random() < share for _ in range(calls)), calls * usual)
        for share in shares
    ]


def test_the_onset_is_where_the_rate_rose() -> None:
    found = find_onset(buckets([0.02] * 60 + [0.35] * 12), KNOWN)
    assert found is not None
    assert abs(found.at - 60) <= 1
    assert found.earliest <= found.low <= 60 <= found.high <= found.latest
    assert found.rate > 0.25
    assert found.is_marked


def test_little_traffic_gives_a_wide_interval() -> None:
    busy = find_onset(buckets([0.02] * 60 + [0.2] * 12, 50), KNOWN)
    quiet = find_onset(buckets([0.02] * 60 + [0.2] * 12, 4), KNOWN)
    assert busy is not None
    assert quiet is not None
    assert busy.high - busy.low < quiet.high - quiet.low


def test_what_never_was_has_no_strong_onset() -> None:
    healthy = find_onset(buckets([0.02] * 72, usual=0.03), KNOWN)
    assert healthy is None or healthy.gain < 4


def test_a_worsening_that_has_ended_says_when() -> None:
    found = find_onset(buckets([0.02] * 30 + [0.4] * 12 + [0.02] * 20), KNOWN)
    assert found is not None
    assert found.over_at is not None
    assert abs(found.over_at - 42) <= 1


def test_one_that_goes_on_has_no_end() -> None:
    found = find_onset(buckets([0.02] * 30 + [0.4] * 12), KNOWN)
    assert found is not None
    assert found.over_at is None


def test_a_rate_nobody_knew_before_is_no_worsening() -> None:
    """A new series at ten percent: twenty calls at two percent are no baseline."""
    found = find_onset(buckets([0.1] * 40), 20)
    assert found is None or found.gain < 7


def test_what_gains_less_than_asked_is_none() -> None:
    slots = buckets([0.02] * 60 + [0.35] * 12)
    found = find_onset(slots, KNOWN)
    assert found is not None
    assert find_onset(slots, KNOWN, least=found.gain - 0.01) == found
    assert find_onset(slots, KNOWN, least=found.gain) is None


def test_a_tiny_rise_is_not_worth_a_word_however_sure() -> None:
    many = [Slot(5_000, 100, 100.0)] * 50 + [Slot(5_000, 120, 100.0)] * 20
    found = find_onset(many, 1_000_000)
    assert found is not None
    assert found.gain > 20
    assert not found.is_marked


def test_empty_buckets_are_no_onset() -> None:
    nothing = Slot(0, 0, 0.0)
    assert find_onset([], KNOWN) is None
    assert find_onset([nothing] * 9, KNOWN) is None
    found = find_onset([*[nothing] * 5, Slot(20, 10, 0.4), nothing], KNOWN)
    assert found is not None
    assert found.at == 5


def test_a_search_behind_what_is_calm_from_its_first_slot_on_ends() -> None:
    counts = [(10, 4), (5, 3), (2, 0), (9, 3), (4, 0), (5, 3), (3, 0), (4, 0), (8, 3), (3, 0)]
    counts += [(3, 1), (2, 0), (3, 1), (4, 3), (3, 0), (3, 0), (3, 0), (5, 3), (6, 5), (2, 1)]
    counts.append((3, 3))
    expected = {3: 1.41, 5: 1.05, 8: 1.12, 10: 0.1, 12: 0.1, 13: 1.09, 18: 1.64, 20: 0.82}
    slots = [Slot(*one, expected.get(at, 0.0)) for at, one in enumerate(counts)]
    found = find_onset(slots, 2_920, 8.7)
    assert found is None or found.at < len(slots)


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
        slots = [Slot(n, sum(random.random() < 0.3 for _ in range(n)), 0.0) for n in calls]
        found += find_rise(slots) is not None
    assert found <= 5


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_all_or_nothing_fails_nothing_grows(share: float) -> None:
    assert find_rise(buckets([share] * 10)) is None
    assert find_rise([]) is None
