"""Generated incidents: a healthy week of calls, and what got worse at its end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from random import Random

from django.db import connection

from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.store.windows import WIDTHS, Grain, floor
from failsoft.events import PostedEvent
from tests.diagnostics.builders import succeeded

DIMENSIONS = ("environment", "node", "provider", "model", "prompt_version", "source", "schema")
MODELS = (("acme", "m-1"), ("beta", "m-2"), ("acme", "m-3"), ("gamma", "m-4"))
OLD, NEW = "v1", "v2"
KINDS = ("truncated", "not_json", "schema_invalid", "refusal", "empty_output")
CALLS = ("events", "attempts", "invalid", "succeeded", *KINDS)
MEASURES = {"run": (*CALLS, "runs", "degraded", "ok_first"), "call": CALLS}
HOUR = WIDTHS[Grain.HOUR]
TEN_MINUTES = timedelta(minutes=10)
WIDE = 6 * HOUR
FINE = timedelta(hours=36)
WEEK = timedelta(days=8)
Place = Mapping[str, str]
Slot = tuple[datetime, timedelta]
"""When a stretch begins and how long it is."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Which calls fail more since when, how often, and in which way."""

    touches: Place
    since: datetime
    rate: float
    kind: str


@dataclass(frozen=True, slots=True)
class IncidentStory:
    """The traffic of a project, what is usual in it, and its troubles."""

    unit: str
    places: Sequence[Place]
    calls_an_hour: float
    usual: float
    troubles: Sequence[Trouble]

    def places_at(self, at: datetime) -> list[Place]:
        """Return what is called at a time: a new prompt from the begin of its trouble on."""
        new = [one.since for one in self.troubles if "prompt_version" in one.touches]
        is_new = any(since <= at for since in new)
        return [one for one in self.places if is_new or one["prompt_version"] == OLD]


def draw_story(seed: int, now: datetime) -> IncidentStory:
    """Draw a story that ends now; the same seed gives the same one."""
    random = Random(seed)
    models = MODELS[: random.randint(1, len(MODELS))]
    troubles = list(_draw_troubles(random, models, now))
    named = [name for one in troubles for name in one.touches]
    prompts = (OLD, NEW) if "prompt_version" in named else (OLD,)
    sources = ("crm", "shop") if "source" in named else ("crm",)
    places = [
        dict(
            zip(
                DIMENSIONS,
                ("prod", "next_step", *model, prompt, source, "PlanPayload"),
                strict=True,
            )
        )
        for model, prompt, source in product(models, prompts, sources)
    ]
    unit = random.choice(("run", "run", "call"))
    return IncidentStory(unit, places, random.uniform(150, 400), random.uniform(0, 0.03), troubles)


def _draw_troubles(
    random: Random, models: Sequence[tuple[str, str]], now: datetime
) -> Iterator[Trouble]:
    kinds = random.sample(KINDS, 2)
    for touches, kind in zip(_draw_touches(random, models), kinds, strict=False):
        minutes = random.choice((40, 90, 200, 500, 900, 1900)) * random.uniform(0.8, 1.1)
        since = now - timedelta(minutes=minutes)
        yield Trouble(touches, since, random.uniform(0.25, 0.9), kind)


def _draw_touches(random: Random, models: Sequence[tuple[str, str]]) -> Sequence[Place]:
    """Draw one cause, a pair that only fails together, or two causes at once."""
    (_, first), (provider, last) = models[0], models[-1]
    several = [[{"model": first}, {"model": last}]] * 3 if len(models) > 1 else []
    return random.choice(
        [
            [{"model": last}],
            [{"prompt_version": NEW}],
            [{"source": "shop"}],
            [{"provider": provider}],
            [{"model": last, "prompt_version": NEW}],
            *several,
        ]
    )


def write_story(project: Project, story: IncidentStory, now: datetime) -> None:
    """Write all of a story."""
    write_calls(project, story, _slots(now))
    for trouble in story.troubles:
        if "prompt_version" in trouble.touches:
            _record_first_calls(project, story, trouble.since)


def write_calls(project: Project, story: IncidentStory, slots: Iterable[Slot]) -> None:
    """Count the calls of some stretches, as the ingestion of their events would have."""
    random, measures = Random(project.slug), MEASURES[story.unit]
    columns = ", ".join(("project_id", "minute", *DIMENSIONS, *measures))
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY diagnostics_rollup_delta ({columns}) FROM STDIN") as copy,
    ):
        for at, width in slots:
            places = story.places_at(at)
            for place in places:
                calls = story.calls_an_hour * (width / HOUR) / len(places)
                counts = _draw_counts(story, place, at, round(calls), random)
                row = [place[name] for name in DIMENSIONS]
                copy.write_row((project.pk, at, *row, *map(counts.get, measures)))


def _slots(now: datetime) -> Iterator[Slot]:
    fine, at = floor(now - FINE, WIDE), floor(now - WEEK, WIDE)
    while at < now:
        width = WIDE if at < fine else TEN_MINUTES
        yield at, width
        at += width


def _draw_counts(
    story: IncidentStory, place: Place, at: datetime, calls: int, random: Random
) -> dict[str, int]:
    hit = [
        one for one in story.troubles if at >= one.since and one.touches.items() <= place.items()
    ]
    rate, kind = (hit[0].rate, hit[0].kind) if hit else (story.usual, "not_json")
    bad = sum(random.random() < rate for _ in range(calls))
    good = calls - bad
    made, fine = ("events", "attempts", "runs"), ("succeeded", "ok_first")
    failed = ("invalid", "degraded", kind)
    return {
        **dict.fromkeys(KINDS, 0),
        **dict.fromkeys(made, calls),
        **dict.fromkeys(fine, good),
        **dict.fromkeys(failed, bad),
    }


def _record_first_calls(project: Project, story: IncidentStory, at: datetime) -> None:
    """Record a call of each new place: the first one says when a version began."""
    first = [
        PostedEvent.model_validate(
            succeeded(occurred_at=at.isoformat(), correlation_id=f"first-{number}", **place)
        )
        for number, place in enumerate(story.places)
        if place["prompt_version"] == NEW
    ]
    record(project.pk, first)
