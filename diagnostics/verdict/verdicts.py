"""The verdict of a selection: which calls got worse, since when, and what it comes from.

What is counted comes from rollups, the judgement from `diagnostics.verdict.judging`; here the
two meet, and what to change is looked up in the failures themselves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic_core import to_jsonable_python

from diagnostics.analysis.onset import RisingShare
from diagnostics.analysis.series import SeriesKey
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.figures import plural
from diagnostics.selection.selection import Selection
from diagnostics.verdict.advice import Advice, advise, part_of
from diagnostics.verdict.cause import LEAST_CALLS, Finding
from diagnostics.verdict.cells import CountCell
from diagnostics.verdict.curves import VerdictRange, stretch_of
from diagnostics.verdict.judging import Diagnosis, judge_asked
from diagnostics.verdict.queries import (
    StoredCounts,
    evidence_of,
    last_change,
    observed_near,
    without_local,
)
from diagnostics.verdict.suspects import Cause
from diagnostics.verdict.wording import (
    UNSURE,
    Sentence,
    VerdictRate,
    calm_words,
    tell,
    tell_calm,
    tell_unsure,
    write_sentence,
)

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a selection; times are None unless something degrades."""

    state: str
    told: Sentence
    finding: Finding
    name: str = ""
    """What is hit: the provider, the model, or how many models."""
    who: SeriesKey | None = None
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    rate: VerdictRate | None = None
    rise: RisingShare | None = None
    """How much it got worse since it began, in shares of calls."""
    advice: Sequence[Advice] = ()
    touched: frozenset[SeriesKey] = frozenset()
    """The series that are hit."""
    others: "Sequence[Verdict]" = ()
    """What else degrades for causes of its own, the gravest first."""

    @property
    def sentence(self) -> str:
        """What is said, as plain text; times are in UTC."""
        return self.told.text


def verdict_of(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Judge the calls that a selection keeps; the number of statements is bounded."""
    counted = without_local(project_id, selection.counted, now)
    asked = _range_of(selection, now)
    first, *others = judge_asked(asked, partial(StoredCounts, project_id, counted))
    if first.since is None:
        return _calm(first)
    verdict, *rest = (_degrading(project_id, one, now) for one in (first, *others))
    return replace(verdict, others=[one for one in rest if one.since])


def calm_verdict(models: int) -> Verdict:
    """Return the verdict on so many models that nothing hits; on none there are no data."""
    if not models:
        return Verdict("not_enough_data", UNSURE, Finding(Cause.NOT_ENOUGH_DATA))
    return Verdict("ok", calm_words(models), Finding(None))


def judged_times(selection: Selection, now: datetime) -> tuple[datetime, datetime]:
    """Return the times that the verdict of a selection is worked out from: a day at least."""
    window = stretch_of(_range_of(selection, now)).window
    return selection.covered(window.since, window.until, now)


def _range_of(selection: Selection, now: datetime) -> VerdictRange:
    return VerdictRange(*selection.window(now), now, selection.needs_versions)


def _calm(judged: Diagnosis) -> Verdict:
    told = tell_calm(judged.models, judged.calls, judged.over, shifted=judged.shifted)
    if judged.finding.cause is Cause.NOT_ENOUGH_DATA:
        return _unsure(judged.finding, judged.calls)
    return Verdict("ok", told, judged.finding)


def _unsure(finding: Finding, calls: int) -> Verdict:
    return Verdict("not_enough_data", tell_unsure(calls), finding)


def _degrading(project_id: int, judged: Diagnosis, now: datetime) -> Verdict:
    finding, since = judged.finding, judged.since or now
    if not judged.touched:
        return _unsure(finding, judged.calls)
    who = _common(judged.touched)
    before = [cell for cell in judged.before if cell.place.who in judged.touched]
    rate = _rate(judged.hit, before)
    # With nothing known of why, the rate must surely be above what is usual.
    is_worse = rate.interval[0] > (rate.baseline or 0.0)
    if finding.cause is Cause.NOT_ENOUGH_DATA and not is_worse:
        return _unsure(finding, sum(cell.attempts for cell in judged.hit))
    evidence = evidence_of(project_id, who, since, now, finding.top_kind)
    changed = last_change(project_id, since + HOUR)
    around = judged.since_low or since, judged.since_high or since
    observed = observed_near(project_id, judged.touched, *around)
    name = _name(finding, who, judged.touched)
    return Verdict(
        state="degrading",
        told=tell(name, rate, judged.since, finding, changed, now, observed, judged.rise),
        finding=finding,
        name=name,
        who=who,
        since=judged.since,
        since_low=judged.since_low,
        since_high=judged.since_high,
        rate=rate,
        rise=judged.rise,
        advice=advise(
            finding.top_kind,
            finding.cause,
            evidence,
            is_compared=finding.is_compared,
            part=part_of(finding),
        ),
        touched=judged.touched,
    )


def _common(touched: Iterable[SeriesKey]) -> SeriesKey:
    """Return what all series that are hit have in common; None where they differ."""
    first, *others = touched
    return SeriesKey(
        *(
            mine if all(mine == its for its in rest) else None
            for mine, *rest in zip(first, *others, strict=True)
        )
    )


def _name(finding: Finding, who: SeriesKey, touched: Iterable[SeriesKey]) -> str:
    if finding.cause in (Cause.MODEL, Cause.PROVIDER_OUTAGE):
        return finding.value
    if who.model:
        return f"{who.provider}/{who.model}" if who.provider else who.model
    return plural(len({(one.provider, one.model) for one in touched}), "model")


def _rate(hit: Sequence[CountCell], before: Sequence[CountCell]) -> VerdictRate:
    """Rate runs when it is runs that end worse, else calls: retries may rescue all."""
    runs, degraded = sum(c.runs for c in hit), sum(c.degraded for c in hit)
    past, past_bad = sum(c.runs for c in before), sum(c.degraded for c in before)
    baseline = past_bad / past if past else None
    usual = wilson_interval(past_bad, past)[1] if past else 0.0
    if runs >= LEAST_CALLS and wilson_interval(degraded, runs)[0] > usual:
        return VerdictRate(degraded, runs, baseline)
    calls, failed = sum(c.attempts for c in hit), sum(c.failed for c in hit)
    past, past_bad = sum(c.attempts for c in before), sum(c.failed for c in before)
    return VerdictRate(min(failed, calls), calls, past_bad / past if past else None, "call")


def describe(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict in the wire format: the gravest cause, and every one by itself."""
    causes = (verdict, *verdict.others) if verdict.since else ()
    return {**_describe(verdict), "incidents": [_describe(one) for one in causes]}


def _describe(verdict: Verdict) -> dict[str, Any]:
    finding, rate, who = verdict.finding, verdict.rate, verdict.who
    low, high = rate.interval if rate else (None, None)
    return {
        "state": verdict.state,
        "since": verdict.since,
        "since_low": verdict.since_low,
        "since_high": verdict.since_high,
        **(who._asdict() if who else dict.fromkeys(SeriesKey._fields)),
        "cause": finding.cause,
        "cause_value": finding.value or None,
        "top_kind": finding.top_kind or None,
        "rate": rate.share if rate else None,
        "low": low,
        "high": high,
        "baseline": rate.baseline if rate else None,
        "runs": rate.total if rate else 0,
        "counted": f"{rate.noun}s" if rate else None,
        "rise": verdict.rise._asdict() if verdict.rise else None,
        "excess": [{**asdict(share), "lift": share.lift} for share in finding.shares],
        "advice": [asdict(advice) for advice in verdict.advice],
        "sentence": verdict.sentence,
    }


def kept_form(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as it is kept in JSON: the wire format, with its sentence in parts."""
    causes = (verdict, *verdict.others) if verdict.since else ()
    parts = {**_in_parts(verdict), "incidents": [_in_parts(one) for one in causes]}
    kept: dict[str, Any] = to_jsonable_python(parts)
    return kept


def _in_parts(verdict: Verdict) -> dict[str, Any]:
    # The kinds are kept for silences, which cover what fails in no other way.
    parts = {
        **_describe(verdict),
        "told": write_sentence(verdict.told),
        "risen": verdict.finding.risen,
    }
    del parts["sentence"]
    return parts
