"""The table of the Now page: models, each with its series, as their range counted them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property, reduce
from itertools import groupby
from operator import attrgetter
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import QueryDict

from diagnostics.alerting.statuses import StatusSet, curves_between, judged_ids
from diagnostics.analysis.series import (
    LONGEST_NAME,
    NOTHING,
    ORDER,
    Rates,
    RunCounts,
    SeriesKey,
    SeriesState,
    SeriesStatus,
    StatusAxis,
    Unit,
    rate_series,
)
from diagnostics.analysis.statistics import LEAST_TRIALS
from diagnostics.figures import Tone, percent, read_number, shorten
from diagnostics.prices.models import TokenPrice, price_on, prices_of
from diagnostics.queries.call_counts import NO_USAGE, USED, TokenUsage
from diagnostics.queries.series import COUNTED, read_series, window_of
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.selection.selection import Selection
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import RunBucket, add_buckets, add_curves, merged
from diagnostics.verdict.wording import SERIES_TONES, state_words
from diagnostics.web.charts.scales import Scale, rate_scale
from diagnostics.web.model_links import model_url, write_segment
from diagnostics.web.sorting import ColumnSort

BARS = 48
AXIS_WIDTH = 170
LOWEST_TOP, HIGHEST_TOP = 0.2, 0.6
ROWS, MOST_ROWS, MOST_SERIES = 15, 50, 12
"""Models on a page, and on one that shows numbers alone; series of open models."""
MOST_OPENED = 4
"""The worst model opens by itself up to so many series: more would say the same."""


@dataclass(frozen=True)
class NowRow:
    """A series, or a model with its series: its state, and what the range counted."""

    key: SeriesKey
    state: SeriesState
    since: datetime | None
    unit: Unit
    both: RunCounts
    """What the range counted of runs and of calls."""
    runs_before: RunBucket
    calls_before: RunBucket
    trends: Sequence[Sequence[RunBucket]]
    """The curves of its series; they are added up where they are drawn."""
    axis: StatusAxis
    usage: TokenUsage
    price: TokenPrice | None
    selection: Selection
    series: Sequence["NowRow"] = ()

    @property
    def url(self) -> str:
        """The page of the model, under the filters; of a series under its own."""
        key, selection = self.key, self.selection
        own = {} if self.series else {"environment": key.environment, "node": key.node}
        return model_url(key.provider, key.model, selection.query_for(**own))

    @property
    def place(self) -> str:
        environment = shorten(self.key.environment or "", LONGEST_NAME)
        parts = (self.key.node or "").replace("_", " "), environment
        return " · ".join(part for part in parts if part)

    @property
    def token(self) -> str:
        """What the address calls an open model by."""
        return f"{write_segment(self.key.provider)}/{write_segment(self.key.model)}"

    @property
    def has_rate(self) -> bool:
        return self.state is not SeriesState.NO_DATA

    @cached_property
    def counts(self) -> RunCounts:
        """What the range counted, in the unit that the state is of."""
        return self.both.by_call if self.unit == "call" else self.both

    @property
    def before(self) -> RunBucket:
        """The week before, in the same unit."""
        return self.calls_before if self.unit == "call" else self.runs_before

    @cached_property
    def rates(self) -> Rates:
        return rate_series(self.counts if self.has_rate else RunCounts())

    @cached_property
    def ends(self) -> Rates:
        """The rates of first attempts and of runs, whatever unit the state is of."""
        return rate_series(self.both if self.has_rate else RunCounts())

    @property
    def beside(self) -> str:
        """What the range counted in the other unit, in words; empty of nothing."""
        counts, words = self.both.by_call, "of calls failed"
        if self.unit == "call":
            counts, words = self.both, "of runs degraded"
        share = rate_series(counts).degraded_rate if self.has_rate else None
        return "" if share is None else f"{percent(share)} {words}"

    @property
    def baseline(self) -> float | None:
        """The degraded share of the week before; None where nothing ran."""
        return self.before.share if self.before.runs else None

    @property
    def difference(self) -> float | None:
        rate, baseline = self.rates.degraded_rate, self.baseline
        return None if rate is None or baseline is None else rate - baseline

    @property
    def excess(self) -> float:
        """Degraded runs beyond those that the baseline explains."""
        return self.counts.degraded - (self.baseline or 0.0) * self.counts.runs

    @property
    def has_interval(self) -> bool:
        """Whether there are runs enough to draw the rate with its interval."""
        return self.counts.runs >= LEAST_TRIALS and self.rates.degraded_rate is not None

    @cached_property
    def bars(self) -> Sequence[RunBucket]:
        return merged(add_curves(self.trends, self.axis.count), _together(self.axis.count))

    @property
    def hot_from(self) -> int | None:
        count = -(-self.axis.count // _together(self.axis.count))
        return self.axis.bar_of(self.since, count) if self.since else None

    @property
    def tone(self) -> Tone:
        return SERIES_TONES[self.state]

    @property
    def words(self) -> str:
        return state_words(self.state)

    @property
    def cost(self) -> Decimal | None:
        """What the tokens cost at the price of today; None without a price."""
        usage, price = self.usage, self.price
        return price.of(usage.input_tokens, usage.output_tokens) if price else None


def _together(buckets: int) -> int:
    """Return how many buckets make a bar."""
    return max(-(-buckets // BARS), 1)


def read_rows(
    project_id: int, selection: Selection, now: datetime, judged: StatusSet, axis: StatusAxis
) -> list[NowRow]:
    """Read every judged series that a selection keeps; the number of queries does not grow."""
    series = judged_ids(project_id, judged)
    window, terms = window_of(selection, now), selection.rollup_terms
    counted = sum_rollups(
        project_id, Question(window, SERIES, (*COUNTED, *USED), terms, series=series)
    )
    counts = read_series(counted)
    usage = {SeriesKey(*row[:4]): TokenUsage.of(row[-len(USED) :]) for row in counted}
    statuses = judged.kept_by(selection, counts)
    by_call = {status.key for status in statuses if status.shown == "call"}
    curves = curves_between(project_id, axis, selection.version_terms, now, by_call, series)
    prices = prices_of(project_id)
    nothing = [NOTHING] * axis.count
    return [
        NowRow(
            key=status.key,
            state=_state(status, counts.get(status.key, RunCounts())),
            since=status.since,
            unit=status.shown,
            both=counts.get(status.key, RunCounts()),
            runs_before=status.before.runs,
            calls_before=status.before.calls,
            trends=[curves.get(status.key, nothing)],
            axis=axis,
            usage=usage.get(status.key, NO_USAGE),
            price=price_on(prices.get((status.key.provider, status.key.model), ()), now.date()),
            selection=selection,
        )
        for status in statuses
    ]


def _state(status: SeriesStatus, counted: RunCounts) -> SeriesState:
    """Return the state of a series; one judged by failures alone may have succeeded."""
    if status.state is SeriesState.NO_DATA and counted.degraded < counted.runs:
        return SeriesState.LOW_VOLUME
    return status.state


def group_rows(rows: Iterable[NowRow]) -> list[NowRow]:
    ordered = sorted(rows, key=lambda row: row.token)
    return [
        _add_up(sorted(series, key=_place))
        for _, series in groupby(ordered, key=lambda row: row.token)
    ]


def _add_up(series: Sequence[NowRow]) -> NowRow:
    """Add up the series of a model, in the unit of the worst; failures alone have no rate."""
    first = series[0]
    rated = [row for row in series if row.has_rate] or [first]
    counts = (attrgetter(*RunCounts.__slots__)(row.both) for row in rated)
    return NowRow(
        key=SeriesKey(None, None, first.key.provider, first.key.model),
        state=first.state,
        since=min((row.since for row in series if row.since), default=None),
        unit=first.unit,
        both=RunCounts(*map(sum, zip(*counts, strict=True))),
        runs_before=add_buckets([row.runs_before for row in rated]),
        calls_before=add_buckets([row.calls_before for row in rated]),
        trends=[row.trends[0] for row in rated if row.unit == first.unit],
        axis=first.axis,
        usage=reduce(TokenUsage.plus, (row.usage for row in series)),
        price=first.price,
        selection=first.selection,
        series=series,
    )


def _place(row: NowRow) -> tuple[int, float]:
    """By state, then by excess; where runs are too few to tell, the latest activity first."""
    if row.state not in {SeriesState.LOW_VOLUME, SeriesState.NO_DATA}:
        return ORDER[row.state], -row.excess
    active = [at for trend in row.trends for at, bucket in enumerate(trend) if bucket.runs]
    # As it is drawn: neighbours that share a bar are equally late.
    return ORDER[row.state], -(max(active, default=0) // _together(row.axis.count))


Figure = float | Decimal | str | None
FIGURES: Mapping[str, Callable[[NowRow], Figure]] = {
    "model": lambda row: row.key.model or "",
    "degraded": lambda row: row.rates.degraded_rate,
    "change": lambda row: row.difference,
    "runs": lambda row: row.counts.runs,
    "first_pass": lambda row: row.ends.first_pass_rate,
    "recovered": lambda row: row.ends.repair_success_rate,
    "p95": lambda row: row.usage.p95_ms,
    "tokens": lambda row: row.usage.tokens,
    "cost": lambda row: row.cost,
}
LABELS = {"first_pass": "First pass", "p95": "p95"}
ORDERS = ("state", *FIGURES)
BY_STATE = ColumnSort("state")


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """Which part of the table is asked for, and in which order."""

    sort: ColumnSort = BY_STATE
    page: int = 1
    is_whole: bool = False
    opened: Sequence[str] | None = None
    """The models that are open; None: the worst one, if it degrades and has few series."""

    @classmethod
    def read(cls, params: QueryDict) -> "TableQuestion":
        """Read the parameters of an address; what is not understood is the default."""
        sort = ColumnSort.read(params)
        return cls(
            sort=sort if sort.column in ORDERS else BY_STATE,
            page=max(read_number(params.get("page"), 6) or 1, 1),
            is_whole=params.get("show") == "all",
            opened=params.getlist("open") if "open" in params else None,
        )


FIRST = TableQuestion()


@dataclass(frozen=True)
class ModelTable:
    """One page of the table, with the links to its other parts."""

    rows: Sequence[NowRow]
    asked: TableQuestion
    query: str
    models: int
    series: int
    pages: int
    opened: frozenset[str] = field(default_factory=frozenset)

    @property
    def heads(self) -> Mapping[str, Mapping[str, str]]:
        labels = {name: LABELS.get(name, name.capitalize()) for name in ORDERS}
        links = self.asked.sort.heads(labels, QueryDict(self._link().removeprefix("?")))
        return dict(zip(ORDERS, links, strict=True))

    @property
    def lines(self) -> Sequence[tuple[NowRow, str, Sequence[NowRow], int]]:
        """Each model with the link that opens or closes it, its open series, and the rest."""
        left, lines = MOST_SERIES, []
        for row in self.rows:
            shown = row.series[:left] if row.token in self.opened else ()
            left -= len(shown)
            rest = len(row.series) - len(shown) if shown else 0
            others = [token for token in self.opened if token != row.token]
            toggle = self._link(others if row.token in self.opened else [*others, row.token])
            lines.append((row, toggle, shown, rest))
        return lines

    @property
    def other_pages(self) -> Mapping[str, str]:
        page = self.asked.page
        near = {"Previous": page - 1, "Next": page + 1}
        return {
            word: self._link(page=str(number))
            for word, number in near.items()
            if 1 <= number <= self.pages
        }

    @property
    def whole(self) -> str:
        """The link to as many models as a page can hold, and back."""
        return self._link(page=None, show=None if self.asked.is_whole else "all")

    @cached_property
    def scale(self) -> Scale:
        drawn = (row.rates.degraded_high or 0.0 for row in self._drawn)
        return rate_scale(drawn, AXIS_WIDTH)

    @cached_property
    def trend_top(self) -> float:
        """The one height of all curves of the page, so that they can be compared."""
        highest = max((b.share for row in self._drawn for b in row.bars), default=0.0)
        return min(max(highest, LOWEST_TOP), HIGHEST_TOP)

    @property
    def _drawn(self) -> list[NowRow]:
        open_ones = (
            series for row in self.rows if row.token in self.opened for series in row.series
        )
        return [row for row in (*self.rows, *open_ones) if row.has_interval]

    def _link(self, opened: Sequence[str] | None = None, **changes: str | None) -> str:
        question = self.asked
        own: dict[str, str | None] = {
            "sort": None if question.sort == BY_STATE else question.sort.text,
            "show": "all" if question.is_whole else None,
            "page": str(question.page) if question.page > 1 else None,
            **changes,
        }
        chosen = [(name, value) for name, value in own.items() if value]
        kept = question.opened if opened is None else opened
        if kept is not None:
            chosen += [("open", token) for token in sorted(kept) or [""]]
        return "?" + "&".join(part for part in (self.query, urlencode(chosen)) if part)


def table_of(rows: Sequence[NowRow], selection: Selection, question: TableQuestion) -> ModelTable:
    """Return the page that is asked for; one beyond the last is the last."""
    models = group_rows(rows)
    ordered = _sorted(models, question.sort)
    pages = Paginator(ordered, MOST_ROWS if question.is_whole else ROWS)
    page = pages.get_page(question.page)
    shown = list(page)
    first = [row for row in shown[:1] if 1 < len(row.series) <= MOST_OPENED]
    worst = [row.token for row in first if row.state is SeriesState.DEGRADING]
    is_first = page.number == 1 and question.sort.column == "state" and not question.is_whole
    opened = question.opened if question.opened is not None else worst if is_first else ()
    return ModelTable(
        rows=shown,
        asked=replace(question, page=page.number),
        query=selection.query(),
        models=len(models),
        series=len(rows),
        pages=pages.num_pages,
        opened=frozenset(opened),
    )


def _sorted(models: Sequence[NowRow], sort: ColumnSort) -> list[NowRow]:
    """Sort by state and excess, by name, or by a figure, largest first; what has none is last."""
    by_place = sorted(models, key=lambda row: (_place(row), row.token))
    if sort.column == "state":
        return by_place[::-1] if sort.is_turned else by_place
    return sort.order(by_place, FIGURES[sort.column])
