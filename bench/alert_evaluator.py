"""The real evaluator minute by minute over simulated time, beside the simulator.

A project of 48 new series, of which four get worse, one after the other, and well again, and
healthy for the rest of a week (of a day above 60 calls an hour). The minutes of the counts are
written beforehand, by one COPY: the evaluator reads none that is to come. Events, ingestion,
folding and notifications are left out; the database need not wait for its disk.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import merge
from math import exp
from time import perf_counter
from typing import NamedTuple
from uuid import uuid4

from django.db import connection

from bench.alert_scenarios import DAY, WEEK, Minute, Scenario
from bench.alert_stories import incidents_of
from bench.database import running_database, say
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.counts import MINUTE
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.incident_models import Incident, IncidentSlice
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.analysis.detectors.replay import SERIES_OF_A_PROJECT, ProjectDetectors
from diagnostics.store.models import Series
from diagnostics.store.windows import floor

USUAL, BAD = 0.03, 0.25
TROUBLES = 4
LEARNED_CALLS, LEARNED_HOURS = 300, 2
"""Of each series, before the first trouble: so many of both."""
APART_CALLS, APART_MINUTES = 10, 30
LASTS_CALLS, LASTS_MINUTES = 90, 60
"""Of a trouble; as much follows the last one."""
WEEKS_UP_TO = 60
"""Calls an hour; busier projects are simulated for a day."""
COPY = (
    "COPY diagnostics_rollup_minute (project_id, bucket, series_id, attempts, invalid) FROM STDIN"
)


class Alarm(NamedTuple):
    """An alarm of one series: since when, and the minutes it fired and cleared in."""

    place: int
    onset: int
    fired: int
    cleared: int | None


class SortedAlarms(NamedTuple):
    """The alarms of a project by what they are worth.

    A late one fires after a trouble, since before its end: it is true, and no false one.
    """

    false: list[Alarm]
    late: list[Alarm]
    missed: int
    """Troubles that nothing fired for while they lasted."""


def sort_alarms(alarms: Sequence[Alarm], told: Sequence[Scenario]) -> SortedAlarms:
    """Tell true alarms from false and late ones."""
    seen, late, false = set[int](), list[Alarm](), list[Alarm]()
    for one in alarms:
        begin, end = told[one.place].bad
        if begin <= one.fired < end:
            seen.add(one.place)
        elif one.onset < end <= one.fired:
            late.append(one)
        else:
            false.append(one)
    return SortedAlarms(false, late, TROUBLES - len(seen))


def scenarios(shape: str, rate: int, seed: int) -> list[Scenario]:
    first = max(LEARNED_CALLS * 60 // rate, LEARNED_HOURS * 60)
    apart = max(APART_CALLS * 60 // rate, APART_MINUTES)
    lasts = max(LASTS_CALLS * 60 // rate, LASTS_MINUTES)
    least = WEEK if rate <= WEEKS_UP_TO else DAY
    minutes = max(least, first + (TROUBLES - 1) * apart + 2 * lasts)
    made = []
    for place in range(SERIES_OF_A_PROJECT):
        begin = first + place * apart
        bad = (begin, begin + lasts) if place < TROUBLES else (0, 0)
        made.append(Scenario(shape, rate, USUAL, minutes, (seed, place), BAD, bad))
    return made


def simulate(made: Sequence[Sequence[Minute]], begin: float = 0.0) -> list[Alarm]:
    """Return the alarms of the simulator as incidents; minutes count from `begin`."""
    project = ProjectDetectors(len(made))
    for at, place, calls, failed in merge(*(placed(place, one) for place, one in enumerate(made))):
        project.feed(place, begin + at * 60.0, calls, failed)
    return sorted(
        Alarm(
            place,
            int((one.onset.at - begin) // 60),
            int((one.at - begin) // 60),
            None if one.cleared is None else int((one.cleared - begin) // 60),
        )
        for place in range(len(made))
        for one in incidents_of(project[place].fires)
    )


def placed(place: int, minutes: Iterable[Minute]) -> Iterator[tuple[int, int, int, int]]:
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
            (one.onset - since) // MINUTE,
            (one.fired_at - since) // MINUTE,
            (one.cleared_at - since) // MINUTE if one.cleared_at else None,
        )
        for one in slices
    )


def poisson_interval(count: int) -> tuple[float, float]:
    """Return the exact 95 % interval of the mean that a count was drawn with."""
    low = _mean_at(count - 1, 0.975) if count else 0.0
    return low, _mean_at(count, 0.025)


def _mean_at(count: int, chance: float) -> float:
    """Return the mean at which so many or fewer are drawn with a chance."""
    low, high = 0.0, 10.0 * count + 20
    for _ in range(60):
        mean = (low + high) / 2
        term = total = exp(-mean)
        for step in range(1, count + 1):
            term *= mean / step
            total += term
        low, high = (mean, high) if total > chance else (low, mean)
    return mean


def print_evaluator(shapes: Sequence[str], rates: Sequence[int], seed: int) -> int:
    """Print what both found in each cell; 0 when it was the same everywhere."""
    say(f"the evaluator on {SERIES_OF_A_PROJECT} series, {TROUBLES} of them worse for a while")
    say(f"{HEAD}{'cleared':>9}{'incidents':>11}{'same':>6}{'seconds':>9}")
    with running_database():
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = off")
        cells = [_print_cell(shape, rate, seed) for shape in shapes for rate in rates]
    say(weekly(sum(one.false for one in cells), sum(one.minutes for one in cells)))
    return 0 if all(one.is_same for one in cells) else 1


HEAD = f"{'shape':16}{'calls/h':>8}{'days':>7}{'fired':>7}{'false':>7}{'late':>6}{'missed':>8}"


def _row(shape: str, rate: int, minutes: int, fired: int, sorts: SortedAlarms) -> str:
    counts = f"{len(sorts.false):7d}{len(sorts.late):6d}{sorts.missed:8d}"
    return f"{shape:16}{rate:8d}{minutes / DAY:7.1f}{fired:7d}{counts}"


def weekly(false: int, minutes: int) -> str:
    """Say how many false fires a week that is, with its exact interval."""
    weeks = minutes / WEEK
    low, high = (end / weeks for end in poisson_interval(false))
    return f"false fires a week: {false / weeks:.2f} [{low:.2f}, {high:.2f}] of {weeks:.1f} weeks"


class Cell(NamedTuple):
    """What was found in one cell: false fires in so many minutes, and whether both agree."""

    false: int
    minutes: int
    is_same: bool


def _print_cell(shape: str, rate: int, seed: int) -> Cell:
    told = scenarios(shape, rate, seed)
    length, made = told[0].minutes, [list(one.calls()) for one in told]
    since = floor(clock.now(), MINUTE) - timedelta(minutes=length)
    simulated = simulate(made, since.timestamp())
    project, seconds = evaluate_all(made, since, length)
    alarms = told_alarms(project, since)
    sorts = sort_alarms(alarms, told)
    cleared = sum(one.cleared is not None for one in alarms)
    incidents = Incident.objects.filter(project=project).count()
    same = sum(one in alarms for one in simulated)
    say(
        f"{_row(shape, rate, length, len(alarms), sorts)}"
        f"{cleared:9d}{incidents:11d}{same:4d}/{len(simulated)}{seconds:9.0f}"
    )
    for name, some in (("false", sorts.false), ("late", sorts.late)):
        for one in some:
            say(f"    {name}: {one}")
    for one in sorted(set(simulated) ^ set(alarms)):
        say(f"    {'simulator' if one in simulated else 'evaluator'} alone: {one}")
    return Cell(len(sorts.false), length, simulated == alarms)
