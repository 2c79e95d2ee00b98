"""Series added up: what goes on, and what is over."""

from diagnostics.analysis.series import SeriesKey
from diagnostics.verdict.cells import CallTotals
from diagnostics.verdict.curves import SeriesBaseline, SeriesCurve
from diagnostics.verdict.judging import ongoing_of, search_curves

PLAN = SeriesKey("prod", "plan", "acme", "one")
STEP = PLAN._replace(node="next_step")
USUAL = SeriesBaseline.of({who: CallTotals(1_000, {"truncated": 20}) for who in (PLAN, STEP)})
BUSY = SeriesCurve([10] * 46, {"truncated": [0] * 20 + [6] * 6 + [0] * 20})


def quiet(after: int) -> SeriesCurve:
    """One call a slot, six of which fail; then eight, of which so many fail."""
    calls = [1] * 34 + [0] * 12
    return SeriesCurve(calls, {"truncated": [0] * 20 + [1] * 6 + [1] * after + [0] * (20 - after)})


def test_few_calls_after_a_trouble_that_is_over_do_not_prolong_it() -> None:
    curves = {PLAN: BUSY, STEP: quiet(after=0)}
    fired = search_curves(curves, USUAL)
    assert any(one.onset.over_at is None for one in fired)
    assert ongoing_of(fired, curves, USUAL) == []


def test_what_is_seen_after_it_goes_on() -> None:
    curves = {PLAN: BUSY, STEP: quiet(after=8)}
    lasting = ongoing_of(search_curves(curves, USUAL), curves, USUAL)
    assert {one.series for one in lasting} == {frozenset({STEP})}
