"""The fortnight: its volume, its incidents, its ids."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from agents.demo.calls import DemoAttempts
from agents.demo.events import MARK, events_of
from agents.demo.story import HOUR, STORY, DemoSeries
from agents.demo.traffic import LOST_SHARE, SteadyChance, traffic, traffic_share
from failsoft.events import EventKind, ParseErrorType, PostedEvent
from failsoft.identifiers import time_of

MOMENTS = (
    # A Sunday before dawn, and the busiest hour of a weekday.
    datetime(2026, 11, 22, 4, 0, tzinfo=UTC),
    datetime(2026, 11, 25, 15, 0, tzinfo=UTC),
)
ONSET = STORY.incidents[0].since_hours * HOUR


@pytest.fixture(scope="module", params=MOMENTS, ids=str)
def now(request: pytest.FixtureRequest) -> datetime:
    moment: datetime = request.param
    return moment


@pytest.fixture(scope="module")
def ladders(now: datetime) -> list[DemoAttempts]:
    return list(traffic(now, Random(7), volume=1))


@pytest.fixture(scope="module")
def events(ladders: list[DemoAttempts]) -> list[PostedEvent]:
    return [event for ladder in ladders for event in events_of(ladder)]


def degraded_share(
    ladders: list[DemoAttempts],
    now: datetime,
    of_interest: Callable[[DemoAttempts, timedelta], bool],
) -> tuple[float, int]:
    chosen = [item for item in ladders if of_interest(item, now - item.calls[0].called_at)]
    return sum(item.reason is not None for item in chosen) / len(chosen), len(chosen)


@pytest.mark.slow
def test_story_fills_a_fortnight_and_stays_small(events: list[PostedEvent], now: datetime) -> None:
    assert 20_000 <= len(events) <= 40_000
    assert min(item.occurred_at for item in events) < now - timedelta(days=STORY.days, hours=-1)
    assert max(item.occurred_at for item in events) <= now


@pytest.mark.slow
def test_six_models_do_both_nodes_and_that_of_an_outside_agent_plans(
    events: list[PostedEvent],
) -> None:
    models = {(item.provider, item.model, item.node) for item in events}
    assert models == {(line.provider, line.model, line.node) for line in STORY.series}
    nodes = Counter((provider, model) for provider, model, _ in models)
    assert sorted(nodes.values()) == [1, 2, 2, 2, 2, 2, 2]
    assert nodes["google", "gemini-2.5-flash"] == 1
    assert {item.environment for item in events} == {"prod", "staging"}


def test_one_model_degrades_since_six_hours(ladders: list[DemoAttempts], now: datetime) -> None:
    def hit(ladder: DemoAttempts) -> bool:
        return ladder.place.model == "claude-haiku-4" and ladder.place.node == "plan"

    share, runs = degraded_share(ladders, now, lambda item, age: hit(item) and age < ONSET)
    assert 0.33 <= share <= 0.47
    assert runs >= 60
    before, _ = degraded_share(ladders, now, lambda item, age: hit(item) and age >= ONSET)
    assert 0.03 <= before <= 0.055


def test_the_incident_is_mostly_cut_off_and_spans_five_prompts(
    ladders: list[DemoAttempts], now: datetime
) -> None:
    hit = [
        item
        for item in ladders
        if item.place.model == "claude-haiku-4" and now - item.calls[0].called_at < ONSET
    ]
    kinds = Counter(
        call.misreading.error_type for item in hit for call in item.calls if call.misreading
    )
    assert kinds[ParseErrorType.TRUNCATED] > 0.7 * kinds.total()
    assert len({item.place.prompt_version for item in hit}) == 5
    assert len({item.place.release for item in hit}) == 1


def test_last_weeks_incident_belongs_to_one_prompt_and_is_over(
    ladders: list[DemoAttempts], now: datetime
) -> None:
    flawed = [item for item in ladders if item.place.prompt_version == "planner-v4"]
    mini = [item for item in flawed if item.place.model == "gpt-4.1-mini"]
    ages = [(now - item.calls[0].called_at) / timedelta(days=1) for item in mini]
    assert 8 < min(ages) < max(ages) < 10
    assert sum(item.reason is not None for item in mini) > 0.18 * len(mini)
    outdated = range(40, 45)  # The incident of an outdated list of tools, in hours.

    def is_other(ladder: DemoAttempts, age: timedelta) -> bool:
        hours = age // timedelta(hours=1)
        return ladder.place.model == "gpt-4.1-mini" and hours < 192 and hours not in outdated

    other, _ = degraded_share(ladders, now, is_other)
    assert other < 0.05


@pytest.mark.parametrize(
    "line",
    [line for line in STORY.series if line.model != "claude-haiku-4"],
    ids=lambda line: f"{line.model} {line.node}",
)
def test_every_other_model_does_as_usual_today(
    line: DemoSeries, ladders: list[DemoAttempts], now: datetime
) -> None:
    def is_of_today(ladder: DemoAttempts, age: timedelta) -> bool:
        at = (ladder.place.model, ladder.place.node)
        return at == (line.model, line.node) and age < timedelta(hours=24)

    share, runs = degraded_share(ladders, now, is_of_today)
    assert share <= line.degraded + LOST_SHARE + 3 / runs


def test_a_run_ends_in_one_good_attempt_or_one_degradation(events: list[PostedEvent]) -> None:
    ends = Counter(
        item.correlation_id
        for item in events
        if item.kind in (EventKind.SUCCEEDED, EventKind.DEGRADED)
    )
    assert set(ends.values()) == {1}


def test_ids_are_unique_carry_their_time_and_the_mark(events: list[PostedEvent]) -> None:
    assert len({item.event_id for item in events}) == len(events)
    assert all(item.event_id.bytes.endswith(MARK) for item in events)
    for item in events[::500]:
        assert abs(time_of(item.event_id) - item.occurred_at) < timedelta(milliseconds=1)
        assert str(item.event_id).endswith(MARK.hex())


def test_every_event_says_that_it_is_made_up(events: list[PostedEvent]) -> None:
    assert {item.source for item in events} == set(STORY.sources)
    assert all(item.attributes["demo"] is True for item in events)


def test_the_same_seed_and_moment_tell_the_same_story() -> None:
    assert some_events(7) == some_events(7)


def test_another_seed_tells_another_story() -> None:
    assert some_events(7) != some_events(8)


def some_events(seed: int) -> list[PostedEvent]:
    told = traffic(MOMENTS[0], Random(seed), volume=0.03)
    return [event for ladder in told for event in events_of(ladder)]


@pytest.mark.parametrize("share", [0.0, 0.04, 0.31, 1.0])
def test_a_steady_chance_keeps_its_share(share: float) -> None:
    chance = SteadyChance(Random(3))
    assert sum(chance.happens(share) for _ in range(400)) == pytest.approx(400 * share, abs=2)


def test_traffic_is_busiest_in_the_afternoon_and_quieter_at_weekends() -> None:
    monday = datetime(2026, 11, 23, tzinfo=UTC)
    shares = [traffic_share(monday + timedelta(hours=hour)) for hour in range(24)]
    assert shares.index(max(shares)) == 14
    assert shares.index(min(shares)) == 2
    assert traffic_share(monday - timedelta(days=1)) < shares[0]
