"""Since when one series degrades."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnostics.analysis import onset
from diagnostics.analysis.onset import lasting_onset
from diagnostics.store.windows import RunBucket

CALM, BAD, NONE = RunBucket(10, 0), RunBucket(10, 4), RunBucket(0, 0)
KNOWN = 500


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ([], None),
        ([CALM] * 20, None),
        ([CALM] * 10 + [BAD] * 5, 10),
        ([BAD] * 5, 0),  # as long as one looks back
        ([CALM] * 10 + [BAD] * 2 + [CALM] + [BAD] * 3, 10),  # one good stretch between
        ([CALM] * 5 + [BAD] * 3 + [CALM] * 12, None),  # over
        ([CALM] * 5 + [NONE] * 5 + [BAD] * 3, 10),  # silence is no trouble
        ([CALM] * 5 + [RunBucket(1, 1)], None),  # a single failure is chance
        ([CALM] * 5 + [RunBucket(40, 3)] * 2, None),  # six of eighty are little more
    ],
)
def test_the_onset_is_the_bucket_that_best_divides_usual_and_worse(
    buckets: list[RunBucket], expected: int | None
) -> None:
    found = lasting_onset(buckets, 0.04, KNOWN)
    assert (found.at if found else None) == expected


def test_rate_at_its_own_high_baseline_is_no_onset() -> None:
    assert lasting_onset([RunBucket(10, 4)] * 20, 0.4, KNOWN) is None


def test_series_without_a_past_can_have_an_onset() -> None:
    found = lasting_onset([CALM] * 3 + [BAD] * 3, None, 0)
    assert found is not None
    assert found.at == 3


@settings(max_examples=300)
@given(
    st.lists(
        st.integers(0, 30).flatmap(
            lambda runs: st.integers(0, runs).map(lambda bad: RunBucket(runs, bad))
        ),
        max_size=60,
    ),
    st.none() | st.floats(0, 0.6),
    st.integers(0, 2_000),
)
def test_a_series_is_only_passed_over_if_a_search_finds_nothing(
    buckets: list[RunBucket], usual: float | None, known: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(onset, "may_be_marked", lambda *_: True)
        searched = lasting_onset(buckets, usual, known)
    assert lasting_onset(buckets, usual, known) == searched
