"""What the page of one model tells from counts: verdict, change, kinds, retries, spreads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from statistics import quantiles
from typing import Any

from django.utils.timezone import get_current_timezone

from diagnostics.alerting.incident_charts import marks_between
from diagnostics.alerting.statuses import recent_verdict_within
from diagnostics.analysis.series import SeriesOnset
from diagnostics.analysis.statistics import attempts_to_success, wilson_interval
from diagnostics.console.models_page import failures_url
from diagnostics.figures import Tone, duration, short_count, write_usd
from diagnostics.prices.models import TokenPrice, price_on, prices_of
from diagnostics.prices.prices import DaySpend, cost_usd, retry_spend
from diagnostics.prices.retry_budgets import RetrySpend, what_if
from diagnostics.queries.call_counts import (
    ANSWERS,
    BASELINE,
    CallCounts,
    answer_tokens,
    cost_of,
    count_calls,
    kind_filter,
    kind_words,
    latency_percentile,
    tallies_of,
)
from diagnostics.queries.matrix import Excess, excess, excess_of_kind, excess_of_rate
from diagnostics.queries.models import (
    calls_by_prompt,
    calls_over_time,
    costs_over_time,
    sums_between,
)
from diagnostics.queries.runs import worse_than_before
from diagnostics.queries.series import BASELINE_SPAN, window_for, window_of
from diagnostics.selection.conditions import Days, narrow
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import RAW_SPAN, ROLLUP_FIELDS, Selection
from diagnostics.store.models import Event
from diagnostics.store.rollups import LATENCY
from diagnostics.store.windows import TimeWindow
from diagnostics.verdict.verdicts import Verdict
from diagnostics.web.charts.lines import Line, LineChart, LineDrawing, draw_lines
from diagnostics.web.charts.scales import Scale, rate_scale
from diagnostics.web.charts.series import Mark, SeriesChart


@dataclass(frozen=True, slots=True)
class Percentiles:
    """How many values there are, and where half, nine tenths and 95 % of them lie."""

    count: int
    half: float | None = None
    most: float | None = None
    nearly_all: float | None = None


def spread_of(values: Sequence[float]) -> Percentiles:
    if not values:
        return Percentiles(0)
    # Of a single value there are none, in Python before 3.13.
    cuts = quantiles(values if len(values) > 1 else [*values, *values], n=20, method="inclusive")
    return Percentiles(len(values), cuts[9], cuts[17], cuts[18])


CALL_KINDS = ("succeeded", "parse_invalid", "provider_error")
COLUMNS = ("latency_ms", "input_tokens", "output_tokens")
MOST_READ = 20_000
MOST_CALLS = 2_000


def sample_calls(
    project_id: int, selection: Selection, since: datetime, until: datetime
) -> Mapping[str, Any]:
    """Say what the latest 2,000 calls among the latest 20,000 events took, 7 days at most.

    `is_cut` says that older ones of the range were not read.
    """
    begin = max(since, until - RAW_SPAN)
    events = Event.objects.filter(project_id=project_id, occurred_at__lt=until)
    latest = events.filter(occurred_at__gte=begin).order_by("-occurred_at")
    # The time of the event at which reading ends: an index alone tells it.
    last = latest.values_list("occurred_at", flat=True)[MOST_READ : MOST_READ + 1]
    begin = max([begin, *last])
    calls = events.filter(occurred_at__gte=begin, kind__in=CALL_KINDS)
    rows = list(
        narrow(calls, selection, Days(begin, until))
        .order_by("-occurred_at", "-event_id")
        .values_list(*COLUMNS, "kind", "occurred_at")[:MOST_CALLS]
    )
    good = [row[:3] for row in rows if row[3] == "succeeded"]
    failed = [row[:3] for row in rows if row[3] != "succeeded"]
    is_full = len(rows) == MOST_CALLS
    return {
        "good": _spread(good),
        "failed": _spread(failed),
        "since": rows[-1][4] if is_full else begin,
        "is_cut": is_full or begin > since,
    }


def _spread(rows: Sequence[tuple[int | None, ...]]) -> Mapping[str, Percentiles]:
    return {
        name: spread_of([sample for row in rows if (sample := row[place]) is not None])
        for place, name in enumerate(COLUMNS)
    }


ADDRESS_FIELDS = frozenset(("provider", "model"))
APPLIED_FIELDS = ROLLUP_FIELDS - ADDRESS_FIELDS
"""The filters of the page of a model."""
MOST_PROMPTS = 12
BAR_WIDTH = 190
SUCCESS_WIDTH = 230
TONES: Mapping[str, Tone] = {"degrading": "bad", "ok": "good"}


@dataclass(frozen=True, slots=True)
class Rise:
    label: str
    found: Excess
    url: str | None
    is_new: bool = False

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return wilson_interval(self.found.a.bounded.good, self.found.a.trials)

    @property
    def tone(self) -> Tone:
        """Bad beyond the baseline, good below it, else quiet."""
        level = self.found.level
        return "bad" if level > 0 else "good" if level < 0 else "quiet"


def model_story(
    project_id: int, selection: Selection, provider: str | None, model: str | None, now: datetime
) -> Mapping[str, Any]:
    """Read what the page shows of a model; the number of queries does not grow."""
    narrowed = narrowed_to(selection, provider, model)
    window, terms = window_of(narrowed, now), narrowed.rollup_terms
    sums = sums_between(project_id, window, terms)
    week_before = window.before(BASELINE_SPAN)
    past = sums_between(project_id, week_before, terms, BASELINE)
    counts, before = count_calls(sums), count_calls(past)
    verdict = recent_verdict_within(project_id, selection.only(APPLIED_FIELDS), narrowed, now)
    key = provider, model
    prices = prices_of(project_id).get(key, ())
    spend = retry_spend(project_id, {key: prices}, window, terms).get(key, RetrySpend(0))
    tallies = tallies_of(sums)
    chart = _chart(project_id, window, narrowed, before, verdict, now)
    kinds = _kinds(counts, before, narrowed)
    prompts = _prompts(project_id, window, narrowed)
    return {
        "verdict": verdict,
        "verdict_tone": TONES.get(verdict.state, "quiet"),
        "calls": counts.calls,
        "cancelled": sums["cancelled"],
        "figures": {
            **{rate: excess_of_rate(rate, counts, before) for rate in counts.rates},
            "worse": excess(*worse_than_before(project_id, window, week_before, terms)),
        },
        "answers": _answers(project_id, window, terms, verdict, now)
        or AnswerLength(answer_tokens(sums), answer_tokens(past)),
        "chart": chart,
        **_charts(project_id, window, narrowed, prices, chart.marks, now),
        "noun": counts.noun,
        "kinds": kinds,
        "kind_scale": _scale(kinds),
        "prompts": prompts[:MOST_PROMPTS],
        "prompts_left_out": max(len(prompts) - MOST_PROMPTS, 0),
        "prompt_scale": _scale(prompts),
        # Of runs that are posted as outcomes, only failing attempts are known.
        "steps": attempts_to_success(tallies) if counts.noun == "call" else (),
        "success_scale": Scale(0.0, 1.0, 12, SUCCESS_WIDTH - 12),
        "budgets": what_if(tallies, spend),
        "spend": spend,
        "price": price_on(prices, now.date()),
        "cost": cost_of(sums),
        "samples": sample_calls(project_id, narrowed, window.since, window.until),
        "failures_url": failures_url(narrowed),
        "narrowed": narrowed,
    }


@dataclass(frozen=True, slots=True)
class AnswerLength:
    """Mean output tokens of valid answers since the onset, or in the window, and before."""

    now: float | None
    before: float | None
    is_since_onset: bool = False


def _answers(
    project_id: int, window: TimeWindow, terms: Sequence[Term], verdict: Verdict, now: datetime
) -> AnswerLength | None:
    """Say how long valid answers were since an onset in the window; None without one.

    That is what their shape tells without their text.
    """
    onset = verdict.since
    if onset is None or not window.since < onset < window.until:
        return None
    stretch = window_for(onset, window.until, terms, now)
    after, before = (
        answer_tokens(sums_between(project_id, part, terms, ANSWERS))
        for part in (stretch, stretch.before(BASELINE_SPAN))
    )
    return AnswerLength(after, before, is_since_onset=True)


def narrowed_to(selection: Selection, provider: str | None, model: str | None) -> Selection:
    """Return the selection of one model: its address says which, not the filters."""
    terms = tuple(term for term in selection.text.terms if term.field not in ADDRESS_FIELDS)
    return replace(
        selection,
        filters={**selection.filters, "provider": provider, "model": model},
        text=replace(selection.text, terms=terms),
    )


def _chart(
    project_id: int,
    window: TimeWindow,
    selection: Selection,
    before: CallCounts,
    verdict: Verdict,
    now: datetime,
) -> SeriesChart:
    terms = selection.rollup_terms
    over_time = calls_over_time(project_id, window, terms, now)
    until = over_time.since + len(over_time.buckets) * over_time.width
    usual, onset, at = None, None, verdict.since
    if at and over_time.since <= at < until:
        onset = SeriesOnset(at, verdict.since_low or at, verdict.since_high or at)
    if before.calls:
        failed = min(before.failed, before.calls)
        usual = (failed / before.calls, *wilson_interval(failed, before.calls))
    return SeriesChart(
        name="calls",
        title="Call failure rate",
        since=over_time.since,
        width=over_time.width,
        slots=over_time.buckets,
        as_of=now,
        noun=before.noun if before.calls else "call",
        baseline=usual,
        onset=onset,
        marks=marks_between(project_id, over_time.since, until, terms),
        query=_query_without_times(selection),
    )


def _charts(
    project_id: int,
    window: TimeWindow,
    selection: Selection,
    prices: Sequence[TokenPrice],
    marks: Sequence[Mark],
    now: datetime,
) -> Mapping[str, LineDrawing | None]:
    """Return latency, tokens and, where a price is known, cost over time."""
    slots, sums = costs_over_time(project_id, window, selection.rollup_terms, now)
    query = _query_without_times(selection)

    def chart(name: str, title: str, unit: str, write: Write, *lines: Line) -> LineDrawing:
        drawn = LineChart(
            name=name,
            title=title,
            since=slots.since,
            width=slots.width,
            marks=marks,
            query=query,
            as_of=now,
            lines=lines,
            unit=unit,
            write=write,
        )
        return draw_lines(drawn, get_current_timezone())

    buckets = [[sums_of_slot[name] for name in LATENCY] for sums_of_slot in sums]
    percentiles = [
        Line(f"p{share}", [latency_percentile(bucket, share / 100) for bucket in buckets])
        for share in (50, 95)
    ]
    tokens = [
        Line(f"{side} tokens", [slot[f"{side.lower()}_tokens"] or None for slot in sums])
        for side in ("Input", "Output")
    ]
    costs = [_cost(slot, prices, slots.since + n * slots.width) for n, slot in enumerate(sums)]
    return {
        "latency_chart": chart(
            "latency", "Latency", "ms", lambda ms: duration(ms / 1000), *percentiles
        ),
        "token_chart": chart(
            "tokens", "Tokens", "tokens", lambda n: short_count(round(n)), *tokens
        ),
        "cost_chart": chart(
            "cost", "Cost", "usd", lambda usd: write_usd(Decimal(str(usd))), Line("Cost", costs)
        )
        if any(costs)
        else None,
    }


Write = Callable[[float], str]


def _cost(sums: Mapping[str, int], prices: Sequence[TokenPrice], at: datetime) -> float | None:
    cost = cost_usd(prices, [DaySpend(at.date(), sums["input_tokens"], sums["output_tokens"])])
    return float(cost) if cost else None


def _query_without_times(selection: Selection) -> str:
    return selection.query(provider=None, model=None, range=None, **{"from": None, "to": None})


def _kinds(now: CallCounts, before: CallCounts, selection: Selection) -> list[Rise]:
    rows = [
        Rise(
            kind_words(kind),
            excess_of_kind(kind, now, before),
            failures_url(selection, kind=kind_filter(kind)),
        )
        for kind in dict.fromkeys([*now.by_kind, *before.by_kind])
    ]
    return sorted(
        _one_of(rows), key=lambda kind: -(kind.found.difference or kind.found.a.share or 0)
    )


def _prompts(project_id: int, window: TimeWindow, selection: Selection) -> list[Rise]:
    """Return the prompt versions, the busiest first, against their own week before."""
    terms = selection.rollup_terms
    now = calls_by_prompt(project_id, window, terms)
    before = calls_by_prompt(project_id, window.before(BASELINE_SPAN), terms)
    rows = []
    for version, counts in now.items():
        if not counts.calls:
            continue
        past = before.get(version, CallCounts())
        rows.append(
            Rise(
                version or "not set",
                excess_of_rate("failed", counts, past),
                failures_url(selection, prompt_version=version),
                is_new=bool(before) and not past.calls,
            )
        )
    return sorted(_one_of(rows), key=lambda prompt: -prompt.found.a.trials)


def _one_of(rows: Sequence[Rise]) -> list[Rise]:
    """Let each comparison know how many are shown with it."""
    return [replace(row, found=replace(row.found, among=len(rows))) for row in rows]


def _scale(rises: Sequence[Rise]) -> Scale:
    return rate_scale((rise.interval[1] for rise in rises if rise.found.a.trials >= 20), BAR_WIDTH)
