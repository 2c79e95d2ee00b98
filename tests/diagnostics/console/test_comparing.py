"""Two sides compared: rates, kinds, the sentence."""

from diagnostics.analysis.statistics import newcombe_interval
from diagnostics.console.comparison import MOST_KINDS, Comparison, compare, difference_of
from diagnostics.queries.call_counts import CallCounts, Side
from diagnostics.store.rollups import FAILURE_KINDS


def side(calls: int, degraded: int = 0, **kinds: int) -> CallCounts:
    failed = sum(kinds.values())
    good = calls - failed
    return CallCounts(calls, failed, calls, degraded, good, max(failed - degraded, 0), kinds)


def told(found: Comparison) -> tuple[str, str]:
    return found.tone, found.sentence.replace("\u202f", " ")


def test_differences_carry_newcombes_interval() -> None:
    one = difference_of("x", "runs", Side(56, 70), Side(48, 80))
    assert (one.low, one.high) == newcombe_interval(56, 70, 48, 80)
    assert one.is_clear
    assert (one.tone, one.word) == ("bad", "worse")


def test_more_first_passes_are_better() -> None:
    one = difference_of("x", "runs", Side(56, 70), Side(48, 80), more_is_worse=False)
    assert (one.tone, one.word) == ("good", "better")


def test_few_trials_on_one_side_say_nothing() -> None:
    one = difference_of("x", "runs", Side(19, 19), Side(0, 800))
    assert not one.is_clear
    assert (one.tone, one.word) == ("quiet", "not enough data")


def test_the_sentence_names_the_difference_and_the_kind() -> None:
    found = compare(side(400, 60, truncated=80), side(400, 10, truncated=16))
    assert told(found) == (
        "bad",
        "A degrades more than B: 15.0 % of 400 runs against 2.5 % of 400 runs, mostly truncated.",
    )


def test_a_better_side_is_good_news() -> None:
    tone, sentence = told(compare(side(400, 4), side(400, 60, truncated=60)))
    assert tone == "good"
    assert sentence.startswith("A degrades less than B: 1.0 % of 400 runs")


def test_no_clear_difference_is_said() -> None:
    tone, sentence = told(compare(side(400, 10), side(400, 12)))
    assert tone == "quiet"
    assert sentence.startswith("No clear difference: A degrades 2.5 %")


def test_failed_calls_speak_where_retries_rescued_every_run() -> None:
    found = compare(side(400, 0, truncated=90), side(400, 0, truncated=12))
    assert found.sentence.startswith("A fails more")


def test_without_enough_nothing_is_claimed() -> None:
    found = compare(side(400, 10), side(12, 9))
    assert told(found) == ("quiet", "Not enough data to compare.")


def test_kinds_that_differ_clearly_come_first_and_are_bounded() -> None:
    many = dict.fromkeys(FAILURE_KINDS, 2)
    found = compare(side(900, **{**many, "refusal": 90}), side(900, **many))
    assert found.kinds[0].kind == "refusal"
    assert len(found.kinds) == MOST_KINDS
