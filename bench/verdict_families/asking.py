"""Counts of a story given to the explainer."""

from datetime import UTC, datetime, timedelta

from bench.verdict_families.worlds import Drawn, Values
from diagnostics.verdict.cells import CountCell, Dimensions
from diagnostics.verdict.counted import CellCounts
from diagnostics.verdict.hypotheses import FirstSeen, ReportedDeploy, Timing
from diagnostics.verdict.rates import noise_of_hours
from failsoft.events import name_served

ONSET = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAMES = {"prompt": "prompt_version", "schema": "schema_version", "release": "release"}


def place_of(values: Values) -> Dimensions:
    told = dict(values)
    model = told["model"].partition("/")[2]
    return Dimensions(
        provider=told["provider"],
        model=model,
        prompt_version=told["prompt"],
        schema_version=told["schema"],
        source=told["source"],
        release=told["release"],
        node=told["node"],
        environment=told["environment"],
        served=name_served(model, told["served"], told["upstream"] or None),
        region=told["region"] or None,
        credential=told["credential"] or None,
    )


def counted_of(story: Drawn) -> CellCounts:
    before, after = (
        [
            CountCell(place_of(values), counts.calls, counts.kinds)
            for values, counts in cells.items()
            if counts.calls
        ]
        for cells in (story.before, story.after)
    )
    noise = noise_of_hours(story.slots.values()) / max(story.hours_after, 1.0)
    return CellCounts.of(after, before, timing_of(story), noise)


def timing_of(story: Drawn) -> Timing:
    """Return the onset with its interval, and what started around it."""
    half = timedelta(minutes=20)
    first = {}
    for values in story.after:
        told = dict(values)
        for (dimension, value), hours in story.first_seen.items():
            name = NAMES.get(dimension)
            if name and told.get(dimension) == value and hours > -24:
                place = place_of(values).versions
                first[place] = FirstSeen(place, ONSET + timedelta(hours=hours))
    deploys = [
        ReportedDeploy(ONSET + timedelta(hours=hours), dimension)
        for hours, dimension, _ in story.deploys
    ]
    later = [ONSET + timedelta(hours=hours) for hours in story.begins]
    others = [(at - half, at + half) for at in later]
    return Timing(ONSET - half, ONSET + half, list(first.values()), deploys, others)
