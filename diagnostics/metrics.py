"""/metrics: counters read from the database, so that every process reports the same."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope, allows
from diagnostics.accounts.authentication import SCHEME, find_key
from diagnostics.alerting.metrics import gauge_alerts
from diagnostics.alerting.rule_models import ProjectStatus
from diagnostics.alerting.statuses import read_row
from diagnostics.analysis.series import SeriesState
from diagnostics.reports.archive import count_mails
from diagnostics.selection.selection import Selection
from diagnostics.store.aggregation import waiting as deltas_waiting
from diagnostics.store.models import Heartbeat
from diagnostics.store.outbox import waiting
from diagnostics.store.retention import storage_sizes
from diagnostics.store.rollups import (
    CALL_ERRORS,
    INVALID,
    LATENCY,
    LATENCY_BOUNDS_MS,
    OUTCOMES,
    UNCHECKED,
)
from diagnostics.store.sql import statement
from failsoft.events import EventKind

LABELS = ("provider", "model")
# Agents choose the names of models: the busiest have their own series, the rest is one.
MAX_SERIES = 200
REST = ("other", "other")
LOOPBACK = frozenset({"127.0.0.1", "::1"})

COUNTERS = (
    (
        "pdca_next_step_parse_invalid",
        "next_step_parse_invalid",
        "Invalid answers of the next-step planner.",
    ),
    (
        "pdca_next_step_degraded",
        "next_step_degraded",
        "Next-step runs that ended without a usable answer (parse failures only).",
    ),
    ("failsoft_plan_attempts", "attempts", "Calls of a planner, of any node."),
    (
        "failsoft_plan_retries_recovered",
        "retries_recovered",
        "Runs whose first answer was invalid and a later one was good.",
    ),
    (
        "failsoft_plan_retries_failed",
        "retries_failed",
        "Runs whose retries did not give a usable answer either.",
    ),
    (
        "failsoft_provider_errors",
        "provider_error",
        "Calls that gave no answer: timeouts, refused connections, server errors.",
    ),
    ("failsoft_repaired_answers", "json_repaired", "Answers whose JSON the parser repaired."),
    ("failsoft_coerced_answers", "coerced", "Answers with a value taken leniently."),
    (
        "failsoft_altered_answers",
        "ok_altered",
        "Answers valid at the first attempt whose reading changed a value.",
    ),
    ("failsoft_simplified_answers", "simplified", "Good answers to a simplified prompt."),
    ("failsoft_retry_milliseconds", "retry_ms", "Time in calls beyond the first."),
)
# Counters with an additional label: its name, and the column of each of its values.
LABELLED = (
    (
        "failsoft_events",
        "kind",
        {k.value: "degraded_events" if k is EventKind.DEGRADED else k.value for k in EventKind},
        "Events stored, by kind.",
    ),
    (
        "failsoft_runs",
        "outcome",
        {**{name: name for name in OUTCOMES}, "unchecked": "unchecked_runs"},
        "Runs, by outcome.",
    ),
    (
        "failsoft_unchecked_answers",
        "reason",
        {name.removeprefix("unchecked_"): name for name in UNCHECKED},
        "Answers that nothing checked, by reason.",
    ),
    (
        "failsoft_invalid_answers",
        "type",
        {
            name.removesuffix("_invalid") if name.startswith("other") else name: name
            for name in INVALID
        },
        "Invalid answers, by type of error.",
    ),
    (
        "failsoft_call_errors",
        "type",
        {name.removeprefix("call_"): name for name in CALL_ERRORS},
        "Calls that gave no answer, by why.",
    ),
    (
        "failsoft_tokens",
        "direction",
        {"input": "input_tokens", "output": "output_tokens"},
        "Tokens of all calls, where reported.",
    ),
    (
        "failsoft_retry_tokens",
        "direction",
        {"input": "retry_input_tokens", "output": "retry_output_tokens"},
        "Tokens of calls beyond the first of a run.",
    ),
)
Counts = dict[tuple[str, str], Counter[str]]
M = TypeVar("M", CounterMetricFamily, GaugeMetricFamily)
Gauges = Callable[[int | None], Iterator[Metric]]
# Gauges of the apps above; each is called with the project, or None for all.
_from_above: list[Gauges] = []


def add_gauges(gauges: Gauges) -> None:
    _from_above.append(gauges)


class EventCollector(Collector):
    """Counts the events of one project, or of all if `project_id` is None."""

    def __init__(self, project_id: int | None) -> None:
        self.project_id = project_id

    def collect(self) -> Iterator[Metric]:
        """Yield the counters; a null provider or model is labelled `unknown`."""
        counts = read_counts(self.project_id)
        for name, column, text in COUNTERS:
            samples = ((labels, row[column]) for labels, row in counts.items())
            yield _fill(CounterMetricFamily(name, text, labels=LABELS), samples)
        for name, label, columns, text in LABELLED:
            by_value = (
                ((*labels, value), row[column])
                for labels, row in counts.items()
                for value, column in columns.items()
            )
            yield _fill(CounterMetricFamily(name, text, labels=(*LABELS, label)), by_value)
        yield _latency(counts)
        yield from gauge_alerts(self.project_id)
        yield from gauge_series(self.project_id)
        yield _report_mails(self.project_id)
        for gauges in _from_above:
            yield from gauges(self.project_id)
        if self.project_id is None:
            yield from _installation()


def read_counts(project_id: int | None) -> Counts:
    """Return counts by (provider, model); beyond 200 pairs the quietest are summed.

    The columns are those of rollups, and those derived from them.
    """
    counts: Counts = {}
    with connection.cursor() as cursor:
        cursor.execute(statement("metric_counts"), {"project": project_id})
        columns = [column.name for column in cursor.description][len(LABELS) :]
        for provider, model, *numbers in cursor.fetchall():
            labels = (provider, model) if len(counts) < MAX_SERIES else REST
            row = dict(zip(columns, numbers, strict=True))
            counts.setdefault(labels, Counter()).update(row)
    for counted in counts.values():
        counted.update(_derive(counted))
    return counts


def _derive(row: Mapping[str, int]) -> Mapping[str, int]:
    """Return derived counts: attempts are valid, invalid or without an answer."""
    good = ("good_2", "good_3", "good_4", "good_5")
    errors = sum(row[name] for name in CALL_ERRORS)
    uncounted = row["unknown_tool"] + row["cancelled"]
    other_events = row["succeeded"] + row["invalid"] + errors + uncounted
    return {
        "retries_recovered": sum(row[name] for name in good),
        "provider_error": errors,
        "parse_invalid": row["invalid"],
        "unchecked_runs": row["runs"] - sum(row[name] for name in OUTCOMES),
        # Posted outcomes are runs, not events.
        "degraded_events": row["events"] - other_events,
    }


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics in Prometheus' text format.

    With an API key of scope read: the project of the key, 403 for another scope. Without
    one, from this machine itself: all projects; from elsewhere, or through a proxy: 401.
    """
    header = request.headers.get("Authorization", "")
    if not header and _is_local(request):
        return _render(None)
    key = find_key(header)
    if key is None:
        return HttpResponse(
            "an API key of scope read is required\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": SCHEME},
        )
    if not allows(frozenset(key.scopes), Scope.READ):
        return HttpResponse("scope read\n", status=403, content_type="text/plain")
    return _render(key.project_id)


def _render(project_id: int | None) -> HttpResponse:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EventCollector(project_id))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _is_local(request: HttpRequest) -> bool:
    """Whether the peer is on this machine, without a proxy in between."""
    forwarded = any(
        name in request.META
        for name in ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")
    )
    return request.META.get("REMOTE_ADDR", "") in LOOPBACK and not forwarded


def _fill(family: M, samples: Iterable[tuple[Sequence[str], float]]) -> M:
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _latency(counts: Counts) -> Metric:
    family = HistogramMetricFamily(
        "failsoft_call_latency_seconds", "Latency of calls.", labels=LABELS
    )
    bounds = [str(bound / 1000) for bound in LATENCY_BOUNDS_MS] + ["+Inf"]
    for labels, row in counts.items():
        steps = accumulate(row[name] for name in LATENCY)
        buckets = list(zip(bounds, steps, strict=True))
        family.add_metric(labels, buckets, sum_value=row["latency_ms"] / 1000)
    return family


SERIES_LABELS = ("environment", "node", "provider", "model")


def gauge_series(project_id: int | None) -> Iterator[Metric]:
    """Yield the states of series as of the last evaluation; for one project, each by name."""
    rows = ProjectStatus.objects.filter(**({} if project_id is None else {"pk": project_id}))
    status_sets = [status_set for row in rows if (status_set := read_row(row))]
    statuses = [status for status_set in status_sets for status in status_set.kept_by(Selection())]
    counted = Counter(status.state for status in statuses)
    states = GaugeMetricFamily("failsoft_series", "Series, by state.", labels=("state",))
    yield _fill(states, (((state,), counted[state]) for state in SeriesState))
    if project_id is None:
        return
    judged = {
        tuple(value or "unknown" for value in status.key): status
        for status in statuses[:MAX_SERIES]
        if status.is_judged
    }
    rates = GaugeMetricFamily(
        "failsoft_series_degraded_ratio",
        "Degraded share of runs since the onset, of the last day where nothing degrades.",
        labels=SERIES_LABELS,
    )
    yield _fill(rates, ((labels, status.rate or 0.0) for labels, status in judged.items()))
    onsets = GaugeMetricFamily(
        "failsoft_series_onset_timestamp_seconds",
        "Since when a series degrades.",
        labels=SERIES_LABELS,
    )
    since = (
        (labels, status.since.timestamp()) for labels, status in judged.items() if status.since
    )
    yield _fill(onsets, since)


def _report_mails(project_id: int | None) -> Metric:
    family = GaugeMetricFamily(
        "failsoft_report_mails",
        "Report mails that wait, and those of the last day that were given up.",
        labels=("state",),
    )
    return _fill(family, (((state,), n) for state, n in count_mails(project_id).items()))


def _installation() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "failsoft_outbox_waiting", "Messages due and unsent.", value=waiting().count()
    )
    yield GaugeMetricFamily(
        "failsoft_deltas_waiting",
        "Counts stored and not folded into rollups yet; they are read all the same.",
        value=deltas_waiting(),
    )
    sizes = GaugeMetricFamily(
        "failsoft_storage_bytes", "Disk size, with indexes.", labels=("table",)
    )
    yield _fill(sizes, (((size.table,), size.bytes) for size in storage_sizes()))
    family = GaugeMetricFamily(
        "failsoft_heartbeat_age_seconds",
        "Time since a part was last seen at work.",
        labels=("part",),
    )
    now = clock.now()
    beats = Heartbeat.objects.all()
    yield _fill(family, (((beat.name,), (now - beat.at).total_seconds()) for beat in beats))
