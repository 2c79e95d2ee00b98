"""What no series shows alone: a few calls of each of many series."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, product

from bench.drawn_counts import DrawnCounts, detect
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.cells import Dimensions
from diagnostics.verdict.curves import VerdictRange
from diagnostics.verdict.judging import Diagnosis, judge_range
from tests.incidents.drawn_runs import DrawnRun

NOW = datetime(2026, 3, 12, 15, 20, tzinfo=UTC)
BEGUN = NOW - timedelta(hours=5)
PLACES = [
    Dimensions("openai", f"m{model}", "v1", None, None, source, "1", "plan", "prod")
    for model, source in product(range(12), ("crm", "etl", "web"))
]
Changes = Callable[[Dimensions, datetime, int], tuple[Dimensions, str | None]]


def played(change: Changes) -> Iterator[DrawnRun]:
    """A run a minute for eight days; every fiftieth is invalid, and what fails now."""
    at = NOW - timedelta(days=8)
    for number, place in enumerate(cycle(PLACES)):
        at += timedelta(minutes=1)
        if at >= NOW:
            return
        now, kind = change(place, at, number)
        yield DrawnRun(at, now, (kind or ("schema_invalid" if number % 50 == 7 else None),))


def judged(change: Changes) -> Sequence[Diagnosis]:
    runs = list(played(change))
    assert not detect(runs), "no series shows it alone"
    day = VerdictRange(NOW - timedelta(days=1), NOW, NOW)
    return judge_range(day, partial(DrawnCounts, runs, []), {})


def unchanged(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
    return place, None


def canary(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
    """Release 2 has a tenth of the calls, and half of these are truncated."""
    if at < BEGUN or number % 10:
        return place, None
    return place._replace(release="2", source="crm"), "truncated" if number % 20 else None


def test_a_release_with_a_few_calls_of_each_model_is_named_though_no_series_degrades() -> None:
    (found,) = judged(canary)
    assert (found.finding.cause, found.finding.value) == (Cause.RELEASE, "crm 2")
    assert found.since is not None
    assert abs(found.since - BEGUN) < timedelta(minutes=15)
    assert found.since_low is not None
    assert found.since_high is not None
    assert found.since_low <= found.since <= found.since_high


def test_a_source_whose_calls_fail_a_little_at_every_model_is_named() -> None:
    def budget_cut(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
        is_cut = at >= BEGUN and place.source == "etl" and number // len(PLACES) % 3 == 0
        return place, "truncated" if is_cut else None

    (found,) = judged(budget_cut)
    assert (found.finding.cause, found.finding.value) == (Cause.SOURCE, "etl")
    assert found.since_low is not None
    assert found.since_high is not None
    assert found.since_low <= BEGUN <= found.since_high


def test_a_project_in_which_nothing_changed_is_well() -> None:
    (found,) = judged(unchanged)
    assert (found.finding.cause, found.since) == (None, None)


def test_a_new_prompt_needs_fewer_failures_than_what_may_begin_at_any_minute() -> None:
    """3 of 8 of its calls fail: less than an alarm of any series and minute needs."""

    def few(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
        if at < BEGUN or number % 36:
            return place, None
        return place._replace(prompt_version="v2"), None if number % 108 else "not_json"

    (found,) = judged(few)
    assert (found.finding.cause, found.finding.value) == (Cause.PROMPT, "v2")


def test_a_new_model_needs_as_few_failures_as_a_new_version() -> None:
    """3 of 5 of its calls fail: it cannot have begun before its first call."""

    def few(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
        if at < BEGUN or number % 60:
            return place, None
        return place._replace(model="m-new"), "not_json" if number // 60 % 5 < 3 else None

    (found,) = judged(few)
    assert (found.finding.cause, found.finding.value) == (Cause.MODEL, "openai/m-new")


def test_a_release_that_nobody_runs_any_more_is_over() -> None:
    def taken_back(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
        is_back = at >= NOW - timedelta(hours=2)
        return unchanged(place, at, number) if is_back else canary(place, at, number)

    (found,) = judged(taken_back)
    assert (found.finding.cause, found.since) == (None, None)


def test_a_source_whose_latest_calls_are_well_is_over() -> None:
    def recovered(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
        is_bad = BEGUN <= at < NOW - timedelta(hours=2)
        is_hit = is_bad and place.source == "etl" and number // len(PLACES) % 2 == 0
        return place, "truncated" if is_hit else None

    (found,) = judged(recovered)
    assert (found.finding.cause, found.since) == (None, None)


def mild(every: int, hours: int) -> Changes:
    """For some hours a few more calls of one source fail, too few for any series to show."""

    def change(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
        is_hit = place.source == "etl" and number // 3 % every == 0
        return place, "truncated" if is_hit and at >= NOW - timedelta(hours=hours) else None

    return change


def test_a_long_stretch_needs_fewer_failures_than_a_short_one() -> None:
    (found,) = judged(mild(25, 8))
    assert found.since is not None


def test_what_is_likely_but_not_sure_is_neither_named_nor_called_well() -> None:
    (found,) = judged(mild(31, 8))
    assert (found.finding.cause, found.since) == (Cause.NOT_ENOUGH_DATA, None)


def test_a_rate_of_some_calls_of_a_series_is_compared_with_that_of_the_same_calls() -> None:
    def hit(place: Dimensions, at: datetime, number: int) -> tuple[Dimensions, str | None]:
        if place.source == "crm":
            return place, "refusal" if number % 4 else None
        is_hit = at >= BEGUN and place.source == "etl" and number // len(PLACES) % 3 == 0
        return place, "truncated" if is_hit else None

    (found,) = judged(hit)
    assert (found.finding.cause, found.finding.value) == (Cause.SOURCE, "etl")
    assert {cell.place.source for cell in found.before} == {"etl"}
