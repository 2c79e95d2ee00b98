"""Since when: the moment that divides usual from worse."""

from random import Random

from diagnostics.analysis.onset import Slot, find_onset

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
