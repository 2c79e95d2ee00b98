"""The verdict of a selection: which calls got worse, since when, and why.

Counts come from rollups, the judgement from `diagnostics.verdict.judging`; this module joins the
two, and derives advice from the failures themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from diagnostics.analysis.series import SeriesKey, SeriesOnset
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.figures import plural
from diagnostics.queries.series import choose_series, ids_of
from diagnostics.selection.selection import Selection
from diagnostics.store.rollups import SERIES
from diagnostics.verdict import queries, wording
from diagnostics.verdict.advice import Advice, advise
from diagnostics.verdict.cause import LEAST_CALLS, Cause, Finding, name_cause
from diagnostics.verdict.cells import CountCell
from diagnostics.verdict.curves import VerdictRange, stretch_of
from diagnostics.verdict.evidence import FailedCalls
from diagnostics.verdict.hypotheses import model_name
from diagnostics.verdict.judging import Diagnosis, Onsets, Over, judge_range
from diagnostics.verdict.knowledge import place_words

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a selection; times are None unless something degrades."""

    state: str
    told: wording.Sentence
    finding: Finding
    name: str = ""
    """What the rate counts: the calls of the cause, of a model, or of a number of models."""
    who: SeriesKey | None = None
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    rate: wording.VerdictRate | None = None
    advice: Sequence[Advice] = ()
    touched: frozenset[SeriesKey] = frozenset()
    """The degraded series."""
    others: "Sequence[Verdict]" = ()
    """Further degradations with their own causes, the largest first."""

    @property
    def causes(self) -> "Sequence[Verdict]":
        """Every degradation, each with its cause, the largest first; none if nothing degrades."""
        return (self, *self.others) if self.since else ()

    @property
    def sentence(self) -> str:
        """The sentence as plain text; times are in UTC."""
        return self.told.text

    @property
    def onsets(self) -> Mapping[SeriesKey, SeriesOnset]:
        """The onset of each degraded series; of several causes, that of the largest."""
        onsets: dict[SeriesKey, SeriesOnset] = {}
        for cause in reversed(self.causes):
            if since := cause.since:
                onset = SeriesOnset(since, cause.since_low or since, cause.since_high or since)
                onsets |= dict.fromkeys(cause.touched, onset)
        return onsets

    def touches(self, values: Mapping[str, object]) -> bool:
        """Whether a degraded series is part of a slice."""
        named = [name for name in SERIES if name in values]
        return any(
            all(getattr(who, name) == values[name] for name in named) for who in self.touched
        )

    @property
    def subject(self) -> dict[str, str | None]:
        """The filters that lead to what is hit."""
        subject = self.who._asdict() if self.who else {}
        named = {name: value for name, value in subject.items() if value is not None}
        if field := FIELD_OF.get(self.finding.cause):
            named[field] = self.finding.value
        return dict(named)


FIELD_OF: Mapping[Cause | None, str] = {
    Cause.PROMPT: "prompt_version",
    Cause.PROVIDER_OUTAGE: "provider",
}


def verdict_of(
    project_id: int, selection: Selection, now: datetime, onsets: Onsets, over: Over | None = None
) -> Verdict:
    """Return the verdict on the calls of a selection; the number of statements is bounded.

    `onsets` are those of the series that degrade, `over` when one did lately. In a large project
    it is on them and on the busiest series of the selection.
    """
    counted = queries.without_local(project_id, selection.counted, now)
    onsets = {key: onset for key, onset in onsets.items() if counted.keeps(key._asdict())}
    requested = _range_of(selection, now)
    choice = choose_series(project_id, counted.series_terms, requested.since, requested.until)
    # Not the worst ones: chosen by their failures they look worse together than they are.
    series = [*choice.busiest, *ids_of(project_id, onsets)] if choice else None
    count = cache(partial(queries.StoredCounts, project_id, counted, series=series))
    first, *others = judge_range(requested, count, onsets, over)
    if first.since is None and first.finding.cause is Cause.NOT_ENOUGH_DATA:
        return Verdict(
            "not_enough_data", wording.describe_unsure(first.calls, first.unrated), first.finding
        )
    if first.since is None:
        if first.is_new and not first.over:
            return Verdict("ok", wording.describe_new(first.calls), first.finding)
        return Verdict(
            "ok", wording.describe_calm(first.models, first.calls, first.over), first.finding
        )
    verdict, *rest = (_degrading(project_id, diagnosis, now) for diagnosis in (first, *others))
    return replace(verdict, others=[diagnosis for diagnosis in rest if diagnosis.since])


def calm_verdict(models: int) -> Verdict:
    """Return the verdict on healthy models; without any there is no data."""
    if not models:
        return Verdict("not_enough_data", wording.UNSURE, Finding(Cause.NOT_ENOUGH_DATA))
    return Verdict("ok", wording.calm_words(models), Finding(None))


def judged_times(selection: Selection, now: datetime) -> tuple[datetime, datetime]:
    """Return the times that the verdict of a selection is worked out from: a day at least."""
    window = stretch_of(_range_of(selection, now)).window
    return selection.covered(window.since, window.until, now)


def _range_of(selection: Selection, now: datetime) -> VerdictRange:
    return VerdictRange(*selection.window(now), now, selection.needs_versions)


def _degrading(project_id: int, diagnosis: Diagnosis, now: datetime) -> Verdict:
    finding, since = diagnosis.finding, diagnosis.since or now
    if not diagnosis.touched:
        return Verdict("not_enough_data", wording.describe_unsure(diagnosis.calls), finding)
    common = _common(diagnosis.touched)
    kind = finding.top_kind
    rate = _rate(diagnosis, kind)
    evidence = replace(
        queries.evidence_of(project_id, common, since, now, kind),
        now=_failed_calls(diagnosis.hit, kind),
        before=_failed_calls(diagnosis.before, kind),
    )
    changed = queries.last_change(project_id, since + HOUR)
    around = diagnosis.since_low or since, diagnosis.since_high or since
    observed = queries.observed_near(project_id, diagnosis.touched, *around)
    name = _name(finding, common, diagnosis.touched)
    words = wording.describe_degradation(
        name, rate, diagnosis.since, finding, changed, now, observed
    )
    return Verdict(
        state="degrading",
        told=replace(words, reason=(wording.SHIFTED,)) if diagnosis.shifted else words,
        finding=finding,
        name=name,
        who=common,
        since=diagnosis.since,
        since_low=diagnosis.since_low,
        since_high=diagnosis.since_high,
        rate=rate,
        advice=advise(finding, evidence),
        touched=diagnosis.touched,
    )


def _common(touched: Iterable[SeriesKey]) -> SeriesKey:
    """Return what all touched series have in common; None where they differ."""
    first, *others = touched
    return SeriesKey(
        *(
            value if all(value == other for other in rest) else None
            for value, *rest in zip(first, *others, strict=True)
        )
    )


def _name(finding: Finding, common: SeriesKey, touched: Iterable[SeriesKey]) -> str:
    """Name the calls that the rate counts: those of the cause, else of what is degraded."""
    if finding.value:
        return name_cause(finding)
    name = plural(len({(series.provider, series.model) for series in touched}), "model")
    if common.model:
        name = model_name(common.provider, common.model)
    is_part = finding.cause in (Cause.MIXED, Cause.NOT_ENOUGH_DATA)
    return f"{name}{place_words(common._asdict().items())}" if is_part else name


def _rate(diagnosis: Diagnosis, kind: str) -> wording.VerdictRate:
    """Return the rate of runs if runs end worse, else of calls: retries may recover all runs."""
    hit = diagnosis.hit
    failed, calls, degraded, runs = _totals(hit)
    past_failed, past_calls, past_degraded, past_runs = _totals(diagnosis.before)
    baseline_bound = wilson_interval(past_degraded, past_runs)[1] if past_runs else 0.0
    is_mostly = 2 * _failed_calls(hit, kind).failed > failed
    by_run = wording.VerdictRate(
        degraded, runs, past_degraded / past_runs if past_runs else None, is_mostly=is_mostly
    )
    baseline = past_failed / past_calls if past_calls else None
    by_call = wording.VerdictRate(min(failed, calls), calls, baseline, "call", is_mostly=is_mostly)
    if runs >= LEAST_CALLS and wilson_interval(degraded, runs)[0] > baseline_bound:
        return replace(by_run, beside=by_call if calls else None)
    return replace(by_call, beside=by_run if runs and diagnosis.tells_ends else None)


def _totals(cells: Iterable[CountCell]) -> tuple[int, ...]:
    counts = ((cell.failed, cell.attempts, cell.degraded, cell.runs) for cell in cells)
    return tuple(map(sum, zip((0,) * 4, *counts, strict=True)))


def _failed_calls(cells: Iterable[CountCell], kind: str) -> FailedCalls:
    counts = [(cell.failures.get(kind, 0), cell.attempts) for cell in cells]
    return FailedCalls(*map(sum, zip((0, 0), *counts, strict=True)))


def describe(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict in the wire format: the main cause, and every cause by itself."""
    return {**_describe(verdict), "incidents": [_describe(cause) for cause in verdict.causes]}


def _describe(verdict: Verdict) -> dict[str, Any]:
    finding, rate, series = verdict.finding, verdict.rate, verdict.who
    beside = rate.beside if rate else None
    return {
        "state": verdict.state,
        "since": verdict.since,
        "since_low": verdict.since_low,
        "since_high": verdict.since_high,
        **(series._asdict() if series else dict.fromkeys(SeriesKey._fields)),
        "cause": finding.cause,
        "cause_value": finding.value or None,
        "top_kind": finding.top_kind or None,
        **_describe_rate(rate),
        "runs": rate.total if rate else 0,
        "beside": {**_describe_rate(beside), "count": beside.total} if beside else None,
        # Of the API since 0.1.0; no drift was ever found by it.
        "rise": None,
        "excess": [{**asdict(share), "lift": share.lift} for share in finding.shares],
        "advice": [asdict(advice) for advice in verdict.advice],
        "sentence": verdict.sentence,
    }


def _describe_rate(rate: wording.VerdictRate | None) -> dict[str, Any]:
    low, high = rate.interval if rate else (None, None)
    return {
        "counted": f"{rate.noun}s" if rate else None,
        "rate": rate.share if rate else None,
        "low": low,
        "high": high,
        "baseline": rate.baseline if rate else None,
    }


KEPT_ONLY = {"name", "told", "risen"}
"""The keys that a stored verdict has beyond the wire format."""


class StoredVerdict(BaseModel, frozen=True, extra="allow"):
    """The wire format with its sentence in parts; a field that is not valid has its default."""

    told: wording.Sentence | None = None
    # The sentence as text, as 0.1.0 stored it.
    sentence: str = ""
    name: str = ""
    since: AwareDatetime | None = None
    since_low: AwareDatetime | None = None
    since_high: AwareDatetime | None = None
    cause: str | None = None
    cause_value: str | None = None
    top_kind: str | None = None
    share: float | None = Field(None, alias="rate")
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    runs: int = 0
    counted: str | None = None
    beside: dict[str, Any] | None = None
    excess: Sequence[dict[str, Any]] = ()
    advice: Sequence[Advice] = ()
    # The kinds of failure that rose; silences use them.
    risen: Sequence[str] = ()

    @model_validator(mode="before")
    @classmethod
    def read_text(cls, stored: dict[str, Any]) -> dict[str, Any]:
        text = stored.get("sentence")
        if text and not stored.get("told"):
            return {**stored, "told": wording.Sentence(str(text).rstrip("."), None, ".")}
        return stored

    @field_validator("*", mode="wrap")
    @classmethod
    def read_field(
        cls, value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> object:
        try:
            return read(value)
        except (ValidationError, AttributeError):  # The latter of keys that a dataclass lacks.
            return cls.model_fields[str(info.field_name)].default

    @property
    def names_onset(self) -> bool:
        return bool(self.since or (self.told and self.told.since))

    @property
    def onset(self) -> tuple[datetime, datetime, datetime] | None:
        """The onset with both ends of its 95 % interval."""
        if (since := self.since) is None:
            return None
        return since, self.since_low or since, self.since_high or since

    @property
    def rate(self) -> wording.StoredRate | None:
        if self.share is None:
            return None
        return wording.StoredRate(
            share=self.share,
            low=self.low,
            high=self.high,
            baseline=self.baseline,
            n=self.runs,
            counted=self.counted or "runs",
        )

    @property
    def text(self) -> str:
        return self.sentence or (self.told.text if self.told else "")

    def as_json(self, exclude: set[str] | None = None) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=exclude)

    @property
    def wire(self) -> dict[str, Any]:
        return self.as_json(KEPT_ONLY) | ({"sentence": self.text} if self.text else {})


def stored_form(verdict: Verdict) -> StoredVerdict:
    parts = {
        **_describe(verdict),
        "name": verdict.name,
        "told": verdict.told,
        "risen": verdict.finding.risen,
    }
    del parts["sentence"]
    return StoredVerdict.model_validate(parts)
