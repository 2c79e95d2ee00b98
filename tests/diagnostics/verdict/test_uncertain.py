"""Causes where the onset is hardly known, values have the same calls, or calls were retried."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from bench.drawn_counts import DrawnCounts
from diagnostics.analysis.series import SeriesOnset
from diagnostics.verdict.advice import advise
from diagnostics.verdict.cause import CAUSES, Cause, Finding
from diagnostics.verdict.cells import CountCell, Dimensions
from diagnostics.verdict.curves import VerdictRange, stretch_of
from diagnostics.verdict.evidence import Evidence
from diagnostics.verdict.findings import find_causes
from diagnostics.verdict.hypotheses import UNTIMED, FirstSeen, Timing
from diagnostics.verdict.judging import judge
from diagnostics.verdict.wording import cause_words
from tests.incidents.drawn_runs import DrawnRun

NOW = datetime(2026, 5, 12, 15, tzinfo=UTC)
HOUR = timedelta(hours=1)
SMALL = Dimensions("acme", "small", "v1", "Plan", "1", "bot", "r1", "plan", "prod")
LARGE = SMALL._replace(model="large")
OTHER = SMALL._replace(provider="zeta", model="other")


def quiet(*places: Dimensions) -> list[CountCell]:
    return [CountCell(place, 800, {"not_json": 8}) for place in places]


def found(cells: list[CountCell], before: list[CountCell], timing: Timing = UNTIMED) -> Finding:
    return find_causes(cells, before, timing)[0]


def begun(place: Dimensions, hours: float, *, low: float, high: float) -> Timing:
    """A version of which the first call and the interval of the onset are some hours ago."""
    first = FirstSeen(place.versions, NOW - hours * HOUR)
    return Timing(NOW - low * HOUR, NOW - high * HOUR, [first])


def test_a_new_prompt_that_all_calls_have_is_not_said_to_be_the_only_provider() -> None:
    new = [place._replace(prompt_version="v2") for place in (SMALL, LARGE)]
    cells = [CountCell(place, 60, {"truncated": 25}) for place in new]
    timing = begun(new[0], 2, low=4, high=1)
    finding = found(cells, quiet(SMALL, LARGE), timing)
    assert (finding.cause, finding.value) == (Cause.PROMPT, "v2")


@pytest.mark.parametrize("kind", ["schema_invalid", "not_json", "unknown_tool", "refusal"])
def test_bad_answers_of_all_models_of_the_only_provider_may_be_ours_or_its(kind: str) -> None:
    """Only one provider is called: an error of ours hits the same calls as one of its own."""
    called = [SMALL, LARGE, SMALL._replace(model="nano")]
    cells = [CountCell(place, 60, {kind: 25}) for place in called]
    finding = found(cells, quiet(*called))
    assert finding.cause is Cause.MIXED
    assert {*finding.alternatives} == {(Cause.UPSTREAM, "acme"), (Cause.VALIDATOR, "")}
    assert cause_words(finding) == (
        "Looks like our validator or the upstream acme, which have the same calls."
        " Calls without the upstream acme would tell."
    )


def test_timeouts_of_a_providers_only_model_in_one_environment_are_its_outage_there() -> None:
    test, other = OTHER._replace(environment="test"), SMALL._replace(environment="test")
    cells = [CountCell(test, 60, {"call_timeout": 40})]
    cells += [CountCell(place, 60, {"not_json": 1}) for place in (SMALL, OTHER, other)]
    finding = found(cells, quiet(SMALL, OTHER, test, other))
    assert (finding.cause, finding.value) == (Cause.PROVIDER_OUTAGE, "zeta")
    assert finding.place == " in test"


def test_a_version_that_began_just_outside_of_the_interval_of_the_onset_is_not_ruled_out() -> None:
    new = [place._replace(release="r2") for place in (SMALL, OTHER)]
    cells = [CountCell(place, 60, {"truncated": 25}) for place in new]
    cells += [CountCell(SMALL._replace(source="crm"), 60, {})]
    before = quiet(SMALL, OTHER, SMALL._replace(source="crm"))
    finding = found(cells, before, begun(new[0], 2, low=5, high=2.5))
    named = {(finding.cause, finding.value), *finding.alternatives}
    assert (Cause.RELEASE, "bot r2") in named


def test_a_version_from_the_first_hours_of_a_project_is_not_new() -> None:
    """The interval of the onset reaches back to the first calls that there are."""
    crm = OTHER._replace(source="crm", prompt_version="c1")
    cells = [CountCell(OTHER, 74, {"call_provider_error": 31}), CountCell(crm, 47, {"not_json": 1})]
    cells += [CountCell(SMALL, 40, {}), CountCell(SMALL._replace(source="crm"), 40, {})]
    before = [CountCell(one.place, 30, {"not_json": 1}) for one in cells]
    timing = begun(OTHER, 24, low=20, high=3)
    finding = found(cells, before, timing)
    assert (finding.cause, finding.value) == (Cause.PAIR, "bot with zeta")


def test_failing_retries_of_one_run_are_less_evidence_than_as_many_runs() -> None:
    cells = [CountCell(OTHER, 60, {"not_json": 12}, 50, 2, 2), CountCell(SMALL, 60, {}, 60)]
    alone = [CountCell(OTHER, 60, {"not_json": 12}, 60, 6, 6), CountCell(SMALL, 60, {}, 60)]
    before = [CountCell(place, 200, {"not_json": 6}) for place in (SMALL, OTHER)]
    assert found(cells, before).probability < found(alone, before).probability


def test_a_cause_beside_calls_that_are_not_well_is_not_said_to_be_without_others() -> None:
    """Of a rollout in steps there are calls with the former version, but few."""
    for cause in CAUSES:
        finding = Finding(cause, top_kind="truncated", is_compared=False)
        for advice in advise(finding, Evidence()):
            assert "no calls" not in advice.evidence.lower()
            assert "no answers" not in advice.evidence


def test_an_unclear_cause_counts_the_calls_that_surely_degrade() -> None:
    """All models of one provider may be hit, by its fault or ours; one of them has an alarm."""
    random, runs = Random(2), list[DrawnRun]()
    places = [SMALL, LARGE, SMALL._replace(model="nano")]
    for minute in range(48 * 60, 0, -2):
        at = NOW - timedelta(minutes=minute)
        for place, hit in zip(places, (0.6, 0.12, 0.12), strict=True):
            failed = random.random() < (hit if minute < 120 else 0.02)
            runs.append(DrawnRun(at, place, ("not_json" if failed else None,)))
    stretch = stretch_of(VerdictRange(NOW - 24 * HOUR, NOW, NOW))
    onset = SeriesOnset(NOW - 2 * HOUR, NOW - 2.1 * HOUR, NOW - 1.9 * HOUR)
    (first,) = judge(DrawnCounts(runs, (), stretch), {SMALL.series: onset}, None, [SMALL.series])
    assert first.finding.cause is Cause.MIXED
    assert first.touched == {SMALL.series}
    assert sum(cell.failed for cell in first.hit) > sum(cell.attempts for cell in first.hit) / 2


def test_a_series_whose_onset_is_hardly_known_keeps_calls_to_compare_with() -> None:
    """Of 40 hours of history the interval of the onset covers the latest 36."""
    random, runs = Random(1), list[DrawnRun]()
    for minute in range(40 * 60, 0, -4):
        at = NOW - timedelta(minutes=minute)
        for place in (SMALL, OTHER, OTHER._replace(source="crm")):
            is_hit = place == OTHER and minute < 180
            failed = random.random() < (0.5 if is_hit else 0.08)
            runs.append(DrawnRun(at, place, ("truncated" if failed else None,)))
    stretch = stretch_of(VerdictRange(NOW - 24 * HOUR, NOW, NOW))
    onset = SeriesOnset(NOW - 3 * HOUR, NOW - 39.5 * HOUR, NOW - 2 * HOUR)
    (first, *_) = judge(DrawnCounts(runs, (), stretch), {OTHER.series: onset}, None, [OTHER.series])
    assert (first.finding.cause, first.finding.value) == (Cause.PAIR, "bot with zeta/other")
