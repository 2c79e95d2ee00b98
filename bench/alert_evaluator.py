"""The real evaluator minute by minute over simulated time, beside the simulator.

A project of 48 new series, of which four get worse, one after the other, and well again. The
minutes of the counts are written beforehand: the evaluator reads none that is to come.
Events, ingestion and notifications are left out.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from heapq import merge
from time import perf_counter
from typing import NamedTuple
from uuid import uuid4

from django.db import connection

from bench.alert_scenarios import Minute, Scenario
from bench.database import running_database, say
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.counts import MINUTE
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.incident_models import Incident, IncidentSlice
from diagnostics.alerting.rule_rows import ensure_standard_rules
from diagnostics.analysis.detectors.change import SERIES_OF_A_PROJECT
from diagnostics.analysis.detectors.replay import Pool
from diagnostics.store.models import Series
from diagnostics.store.windows import floor

USUAL, BAD = 0.03, 0.25
TROUBLES = 4
LEARNED_CALLS, LEARNED_HOURS = 300, 2
"""Of each series, before the first trouble: so many of both."""
APART_CALLS, APART_MINUTES = 10, 30
LASTS_CALLS, LASTS_MINUTES = 90, 60
"""Of a trouble; as much follows the last one."""
COPY = (
    "COPY diagnostics_rollup_minute (project_id, bucket, series_id, attempts, invalid) FROM STDIN"
)


class Alarm(NamedTuple):
    """An alarm of one series: the minutes it fired and cleared in."""

    place: int
    fired: int
    cleared: int | None


def scenarios(shape: str, rate: int, seed: int) -> list[Scenario]:
    """Return the series of a project."""
    first = max(LEARNED_CALLS * 60 // rate, LEARNED_HOURS * 60)
    apart = max(APART_CALLS * 60 // rate, APART_MINUTES)
    lasts = max(LASTS_CALLS * 60 // rate, LASTS_MINUTES)
    minutes = first + (TROUBLES - 1) * apart + 2 * lasts
    made = []
    for place in range(SERIES_OF_A_PROJECT):
        begin = first + place * apart
        bad = (begin, begin + lasts) if place < TROUBLES else (0, 0)
        made.append(Scenario(shape, rate, USUAL, minutes, (seed, place), BAD, bad))
    return made


def simulate(made: Sequence[Sequence[Minute]], since: datetime) -> list[Alarm]:
    """Return the alarms of the simulator."""
    pool, begin = Pool([None] * len(made)), since.timestamp()
    alarms: dict[tuple[int, float], Alarm] = {}
    for at, place, calls, failed in merge(*(_placed(place, one) for place, one in enumerate(made))):
        if told := pool.feed(place, begin + at * 60.0, failed, calls):
            fired = round((told.at - begin) / 60)
            alarms[place, told.at] = Alarm(place, fired, at if told.cleared is not None else None)
    return sorted(alarms.values())


def _placed(place: int, minutes: Sequence[Minute]) -> Iterator[tuple[int, int, int, int]]:
    for at, calls, failed in minutes:
        yield at, place, calls, failed


def evaluate_all(
    made: Sequence[Sequence[Minute]], since: datetime, length: int
) -> tuple[Project, float]:
    """Let the evaluator look at every minute of a new project; gives the seconds it took."""
    project = Project.objects.create(slug=f"p-{Project.objects.count()}", name="Evaluated")
    series = Series.objects.bulk_create(
        Series(project=project, key=uuid4(), node="plan", provider="acme", model=str(place))
        for place in range(len(made))
    )
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for one, minutes in zip(series, made, strict=True):
            for at, calls, failed in minutes:
                copy.write_row((project.pk, since + at * MINUTE, one.pk, calls, failed))
    ensure_standard_rules()
    begun = perf_counter()
    for minute in range(length):
        evaluate_project(project.pk, since + minute * MINUTE)
    return project, perf_counter() - begun


def told_alarms(project: Project, since: datetime) -> list[Alarm]:
    """Return the alarms that the evaluator raised, by the minute."""
    slices = IncidentSlice.objects.filter(incident__project=project)
    return sorted(
        Alarm(
            int(one.slice["model"]),
            (one.fired_at - since) // MINUTE,
            (one.cleared_at - since) // MINUTE if one.cleared_at else None,
        )
        for one in slices
    )


def print_evaluator(shapes: Sequence[str], rates: Sequence[int], seed: int) -> int:
    """Print what both found in each cell; 0 when it was the same everywhere."""
    say(f"the evaluator on {SERIES_OF_A_PROJECT} series, {TROUBLES} of them worse for a while")
    say(
        f"{'shape':16}{'calls/h':>8}{'hours':>7}{'fired':>7}{'false':>7}{'cleared':>9}{'incidents':>11}"
        f"{'same':>6}{'seconds':>9}"
    )
    is_same = True
    with running_database():
        for shape in shapes:
            for rate in rates:
                is_same &= _print_cell(shape, rate, seed)
    return 0 if is_same else 1


def _print_cell(shape: str, rate: int, seed: int) -> bool:
    told = scenarios(shape, rate, seed)
    length, made = told[0].minutes, [list(one.calls()) for one in told]
    since = floor(clock.now(), MINUTE) - timedelta(minutes=length)
    simulated = simulate(made, since)
    project, seconds = evaluate_all(made, since, length)
    alarms = told_alarms(project, since)
    false = sum(one.place >= TROUBLES for one in alarms)
    cleared = sum(one.cleared is not None for one in alarms)
    incidents = Incident.objects.filter(project=project).count()
    same = sum(one in alarms for one in simulated)
    say(
        f"{shape:16}{rate:8d}{length / 60:7.1f}{len(alarms):7d}{false:7d}{cleared:9d}"
        f"{incidents:11d}{same:4d}/{len(simulated)}{seconds:9.0f}"
    )
    for one in sorted(set(simulated) ^ set(alarms)):
        say(f"    {'simulator' if one in simulated else 'evaluator'} alone: {one}")
    return simulated == alarms
