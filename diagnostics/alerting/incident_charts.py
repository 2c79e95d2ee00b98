"""The curve of an incident, and the marks of deploys and incidents on every axis of time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from urllib.parse import urlencode

from django.urls import reverse

from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rules import terms_of
from diagnostics.alerting.statuses import COUNTING
from diagnostics.analysis.series import STATUS_SPAN, SeriesKey, SeriesOnset, Unit, axis_of
from diagnostics.ingest.models import Deploy, deploys_of
from diagnostics.queries.series import recent_trends, slot_width, trends, window_for
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import keeps_all
from diagnostics.store.windows import RunBucket, add_curves, ceil, floor
from diagnostics.web.charts.series import Mark, SeriesChart, carries_rate, widen

BEFORE, AFTER = timedelta(hours=1), timedelta(hours=1)
"""What is drawn at least before the onset, and after the end."""
SMALL_HEIGHT = 120
MOST_SLOTS = 300
MOST_DEPLOYS, MOST_SMALL_DEPLOYS = 60, 3
DEPLOY_FIELDS = ("source", "environment", "provider", "model")
VERSION_OF_KIND = {"prompt": "prompt_version", "release": "release"}
MOST_MARKS = 60
Curves = Mapping[SeriesKey, Sequence[RunBucket]]


def small_charts(
    project_id: int, incidents: Sequence[Incident], now: datetime
) -> dict[int, SeriesChart]:
    """Return the curves of open incidents, from before the onset until now, by their ids.

    A day at most, from curves that the Now page reads anyway; the number of queries does
    not grow with the incidents.
    """
    axis = axis_of(now - STATUS_SPAN, now)
    deploys = list(deploys_of(project_id, axis.since, axis.until)[:MOST_DEPLOYS])
    curves: dict[Unit, Curves] = {
        unit: recent_trends(project_id, axis.since, axis.until, axis.count, (), now, COUNTING[unit])
        for unit in dict.fromkeys(map(_unit_of, incidents))
    }
    charts = {}
    for incident in incidents:
        buckets = _added(incident, curves[_unit_of(incident)], axis.count)
        marks = deploy_marks(deploys, terms_of(incident.filter))[-MOST_SMALL_DEPLOYS:]
        drawn = _chart(incident, axis.since, axis.width, buckets, marks)
        charts[incident.pk] = replace(drawn, height=SMALL_HEIGHT, as_of=now)
    return charts


def incident_chart(incident: Incident, now: datetime) -> SeriesChart:
    terms = terms_of(incident.filter)
    until = min(incident.cleared_at + AFTER if incident.cleared_at else now, now)
    begin = incident.began - max(until - incident.began, STATUS_SPAN)
    width = slot_width(window_for(begin, until, terms, now), terms, now, MOST_SLOTS)
    since = floor(begin, width)
    count = max((ceil(until, width) - since) // width, 1)
    end = since + count * width
    counting = COUNTING[_unit_of(incident)]
    curves = trends(incident.project_id, since, end, count, terms, counting)
    deploys = deploys_of(incident.project_id, since, end)[:MOST_DEPLOYS]
    marks = sorted(
        [*deploy_marks(deploys, terms), *_transition_marks(incident)], key=attrgetter("at")
    )
    drawn = _chart(incident, since, width, _added(incident, curves, count), marks)
    return replace(drawn, as_of=now)


def _unit_of(incident: Incident) -> Unit:
    rate = incident.latest_verdict.rate
    return "call" if rate and rate.counted == "calls" else "run"


def _added(incident: Incident, curves: Curves, count: int) -> Sequence[RunBucket]:
    """Add up the curves of the series that the slices of an incident are made of."""
    slices = [
        {name: value for name, value in row.slice.items() if name in SERIES_FIELDS}.items()
        for row in incident.slices.all()
    ]
    own_curves = [
        curve
        for key, curve in curves.items()
        if any(values <= key._asdict().items() for values in slices)
    ]
    return add_curves(own_curves, count)


def _chart(
    incident: Incident,
    since: datetime,
    width: timedelta,
    buckets: Sequence[RunBucket],
    marks: Sequence[Mark],
) -> SeriesChart:
    """Draw from an hour before the onset, or from as long before as buckets need for a rate."""
    rate, unit = incident.latest_verdict.rate, _unit_of(incident)
    usual = rate.baseline if rate else None
    at, low, high = incident.latest_verdict.onset or (incident.onset,) * 3
    whole = SeriesChart(
        name=f"incident-{incident.pk}",
        title=f"Failure rate of {unit}s",
        since=since,
        width=width,
        slots=buckets,
        noun=unit,
        failing="degraded" if unit == "run" else "failed",
        baseline=None if usual is None else (usual, usual, usual),
        onset=SeriesOnset(at, low, high) if at >= since else None,
        marks=marks,
        query=incident.filter,
        page=reverse("now"),
    )
    before = min(max((incident.began - BEFORE - since) // width, 0), len(buckets) - 1)
    while before:
        near = replace(whole, since=since + before * width, slots=buckets[before:])
        if carries_rate(widen(near)):
            return near
        before = max(2 * before - len(buckets), 0)
    return whole


def _transition_marks(incident: Incident) -> Iterator[Mark]:
    yield Mark(incident.fired_at, "fired", "")
    if incident.acknowledged_at:
        by = incident.acknowledged_by
        yield Mark(incident.acknowledged_at, "acknowledged", by.get_username() if by else "")
    if incident.cleared_at:
        yield Mark(incident.cleared_at, "resolved", "")


def marks_between(
    project_id: int, since: datetime, until: datetime, terms: Sequence[Term] = ()
) -> list[Mark]:
    """Return the marks with since <= at < until, oldest first, at most the latest 60.

    A deploy of another source or environment than the terms keep is left out, and what was
    observed of another model; what does not say where it belongs counts everywhere.
    """
    marks = deploy_marks(deploys_of(project_id, since, until)[:MOST_MARKS], terms)
    rows = Incident.objects.filter(project_id=project_id, onset__gte=since, onset__lt=until)
    for incident in rows.order_by("-onset").prefetch_related("slices")[:MOST_MARKS]:
        if incident.is_kept_by(terms):
            url = reverse("incident", args=[incident.pk])
            marks.append(Mark(incident.onset, "incident", incident.title, url))
    return sorted(marks, key=attrgetter("at"))[-MOST_MARKS:]


def deploy_marks(deploys: Iterable[Deploy], terms: Sequence[Term] = ()) -> list[Mark]:
    """Return the marks of the deploys that these terms keep, oldest first."""
    marks = []
    for deploy in deploys:
        known = {name: getattr(deploy, name) for name in DEPLOY_FIELDS}
        if keeps_all(terms, {name: value for name, value in known.items() if value is not None}):
            field = VERSION_OF_KIND.get(deploy.kind)
            url = field and f"{reverse('now')}?{urlencode({field: deploy.version})}"
            label = f"{deploy.version} ({deploy.source})" if deploy.source else deploy.version
            if deploy.previous is not None:
                label = f"{deploy.model}: {deploy.previous} → {deploy.version}"
            marks.append(Mark(deploy.at, deploy.kind, label, url))
    return sorted(marks, key=attrgetter("at"))
