"""Two causes at once: each is told by itself, whatever calls they share."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, product

import pytest

from bench.drawn_counts import DrawnCounts, detect
from diagnostics.verdict.cells import Dimensions
from diagnostics.verdict.curves import VerdictRange
from diagnostics.verdict.judging import judge_range
from tests.incidents.drawn_runs import DrawnRun

NOW = datetime(2026, 3, 12, 15, 0, tzinfo=UTC)
RELEASED, WORSE = NOW - timedelta(hours=8), NOW - timedelta(hours=4)
SOURCES = ("crm", "etl", "web")
Fails = Callable[[Dimensions, datetime, int], str | None]


def places(*models: tuple[str, str]) -> list[Dimensions]:
    return [
        Dimensions(*model, "v1", None, None, source, "1", "plan", "prod")
        for source, model in product(SOURCES, models)
    ]


def played(called: list[Dimensions], fails: Fails) -> Iterator[DrawnRun]:
    """A run a minute for five days; every thirtieth is invalid, and what fails now."""
    at = NOW - timedelta(days=5)
    for number, place in enumerate(cycle(called)):
        at += timedelta(minutes=1)
        if at >= NOW:
            return
        if place.source == "crm" and at >= RELEASED:
            place = place._replace(release="2")
        kind = fails(place, at, number // len(called)) or (number % 30 == 7 and "schema_invalid")
        yield DrawnRun(at, place, (kind or None,))


def told(called: list[Dimensions], fails: Fails) -> list[tuple[str | None, str]]:
    day = VerdictRange(NOW - timedelta(days=1), NOW, NOW)
    runs = list(played(called, fails))
    found = judge_range(day, partial(DrawnCounts, runs, []), detect(runs))
    return sorted((one.finding.cause, one.finding.value) for one in found)


def is_release(place: Dimensions, round_: int) -> bool:
    return place.release == "2" and round_ % 3 == 0


def test_a_release_is_seen_though_the_only_provider_fails() -> None:
    def fails(place: Dimensions, at: datetime, round_: int) -> str | None:
        if at >= WORSE and round_ % 2:
            return "call_provider_error"
        return "not_json" if is_release(place, round_) else None

    called = places(("groq", "groq-a"), ("groq", "groq-b"))
    assert told(called, fails) == [("provider_outage", "groq"), ("release", "crm 2")]


@pytest.mark.parametrize("kind", ["truncated", "not_json"])
def test_a_release_and_a_model_that_it_calls_are_two_causes(kind: str) -> None:
    def fails(place: Dimensions, at: datetime, round_: int) -> str | None:
        if at >= WORSE and place.model == "claude" and round_ % 2:
            return kind
        return "not_json" if is_release(place, round_) else None

    called = places(("anthropic", "claude"), ("groq", "llama"), ("openai", "gpt"))
    assert told(called, fails) == [("model", "anthropic/claude"), ("release", "crm 2")]


def test_a_model_that_mostly_the_release_calls_is_compared_with_its_other_calls() -> None:
    def fails(place: Dimensions, at: datetime, round_: int) -> str | None:
        if at >= WORSE and place.model == "claude" and round_ % 2:
            return "truncated"
        return "not_json" if is_release(place, round_) else None

    rarely = [*places(("anthropic", "claude")), *places(("groq", "llama"), ("openai", "gpt"))[:2]]
    assert told(rarely, fails) == [("model", "anthropic/claude"), ("release", "crm 2")]


def test_a_cause_that_began_later_in_the_same_series_has_its_own_onset() -> None:
    later = NOW - timedelta(hours=1, minutes=30)

    def fails(place: Dimensions, at: datetime, round_: int) -> str | None:
        if at >= later and place.provider == "groq" and round_ % 8:
            return "call_provider_error"
        return "schema_invalid" if at >= WORSE and place.source == "etl" and round_ % 2 else None

    runs = list(played(places(("groq", "llama"), ("openai", "gpt"), ("openai", "mini")), fails))
    day = VerdictRange(NOW - timedelta(days=1), NOW, NOW)
    found = judge_range(day, partial(DrawnCounts, runs, []), detect(runs))
    since = {one.finding.top_kind: one.since for one in found}
    assert since.keys() == {"schema_invalid", "call_provider_error"}
    for kind, at in (("schema_invalid", WORSE), ("call_provider_error", later)):
        assert abs((since[kind] or NOW) - at) < timedelta(minutes=25)


def test_no_onset_lies_after_the_moment_that_is_judged() -> None:
    now = NOW - timedelta(minutes=12, seconds=59)
    new = Dimensions("acme", "new", None, None, None, "shop", None, "book", "prod")

    def fails(place: Dimensions, at: datetime, round_: int) -> str | None:
        return "truncated" if at >= WORSE and place.model == "claude" and round_ % 2 else None

    runs = list(played(places(("anthropic", "claude"), ("groq", "llama")), fails))
    begun = now - timedelta(minutes=4)
    runs += [DrawnRun(begun + timedelta(seconds=one), new, (None,)) for one in range(200)]
    checked, failed = new._replace(schema="Refund", schema_version="1"), ("schema_invalid",)
    runs += [DrawnRun(now - timedelta(seconds=25), checked, failed)] * 60
    runs = sorted((run for run in runs if run.at < now), key=lambda run: run.at)
    day = VerdictRange(now - timedelta(days=1), now, now)
    found = judge_range(day, partial(DrawnCounts, runs, []), detect(runs))
    assert sorted(str(one.finding.cause) for one in found) == ["model", "schema"]
    assert all(one.since_high is not None and one.since_high <= now for one in found)
