"""Who is told, when again, how often: tables of the pure rules."""

from datetime import UTC, datetime, time, timedelta

import pytest

from diagnostics.alerting.delivery import PAUSES, next_pause
from diagnostics.alerting.notification_facts import APART, COLLECT, digest_due, summarise
from diagnostics.alerting.reminders import ChannelHistory, is_due_again
from diagnostics.alerting.routing import Listener, Occasion, QuietHours, RoutingResult, decide

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NIGHT = QuietHours(time(22), time(7), "Europe/Berlin")
OPEN = Listener("warning", None, 10, 0)


@pytest.mark.parametrize(
    ("at", "quiet"),
    [
        pytest.param("2026-07-01T19:59:00", False, id="a minute before, by summer time"),
        pytest.param("2026-07-01T20:00:00", True, id="the beginning is part of it"),
        pytest.param("2026-07-02T04:59:00", True, id="after midnight"),
        pytest.param("2026-07-02T05:00:00", False, id="the end is not"),
        pytest.param("2026-01-01T20:59:00", False, id="winter time is an hour later"),
        pytest.param("2026-01-01T21:00:00", True, id="winter time, the beginning"),
    ],
)
def test_quiet_hours_are_those_of_the_zone(at: str, quiet: bool) -> None:
    assert NIGHT.cover(datetime.fromisoformat(at).replace(tzinfo=UTC)) is quiet


def test_quiet_hours_within_a_day() -> None:
    lunch = QuietHours(time(12), time(13), "UTC")
    assert lunch.cover(NOON)
    assert not lunch.cover(NOON + HOUR)


@pytest.mark.parametrize(
    ("listener", "news", "fate", "why"),
    [
        pytest.param(OPEN, Occasion("warning", NOON), RoutingResult.QUEUED, "", id="told"),
        pytest.param(
            OPEN, Occasion("info", NOON), RoutingResult.SUPPRESSED, "below warning", id="too small"
        ),
        pytest.param(
            OPEN,
            Occasion("critical", NOON, held_by="a silence"),
            RoutingResult.SUPPRESSED,
            "a silence",
            id="silenced",
        ),
        pytest.param(
            Listener("info", NIGHT, 10, 0),
            Occasion("critical", NOON + 10 * HOUR),
            RoutingResult.SUPPRESSED,
            "quiet hours",
            id="quiet",
        ),
        pytest.param(
            Listener("info", NIGHT, 10, 0),
            Occasion("critical", NOON + 10 * HOUR, is_recovery=True, was_notified=True),
            RoutingResult.QUEUED,
            "",
            id="a recovery closes the alert in quiet hours too",
        ),
        pytest.param(
            OPEN,
            Occasion("critical", NOON, is_recovery=True, was_notified=True, held_by="a silence"),
            RoutingResult.SUPPRESSED,
            "a silence",
            id="no recovery under a silence",
        ),
        pytest.param(
            OPEN,
            Occasion("critical", NOON, is_recovery=True, has_alert=True, held_by="a silence"),
            RoutingResult.QUEUED,
            "",
            id="what opened an alert closes it under a silence too",
        ),
        pytest.param(
            OPEN,
            Occasion("warning", NOON, is_recovery=True),
            RoutingResult.SUPPRESSED,
            "not notified",
            id="a recovery of what nobody heard of",
        ),
        pytest.param(
            Listener("info", None, 10, 9),
            Occasion("info", NOON),
            RoutingResult.QUEUED,
            "",
            id="the tenth of the hour",
        ),
        pytest.param(
            Listener("info", None, 10, 10),
            Occasion("info", NOON),
            RoutingResult.DIGESTED,
            "more than 10",
            id="the eleventh",
        ),
        pytest.param(
            Listener("info", None, 10, 10),
            Occasion("info", NOON, is_recovery=True, was_notified=True, has_alert=True),
            RoutingResult.QUEUED,
            "",
            id="what opened an alert closes it though it is the eleventh",
        ),
    ],
)
def test_what_a_channel_is_told(
    listener: Listener, news: Occasion, fate: RoutingResult, why: str
) -> None:
    became, reason = decide(listener, news)
    assert became == fate
    assert why in reason


def test_tries_are_1_5_15_60_minutes_and_6_hours_apart() -> None:
    pauses = [next_pause(tries) for tries in range(1, len(PAUSES) + 2)]
    assert pauses == [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, None]


@pytest.mark.parametrize(
    ("heard", "every", "due"),
    [
        pytest.param(ChannelHistory(NOON, NOON), HOUR, False, id="just told"),
        pytest.param(ChannelHistory(NOON - HOUR, NOON - HOUR), HOUR, True, id="an hour ago"),
        pytest.param(ChannelHistory(NOON - HOUR, NOON - HOUR), None, False, id="not wanted"),
        pytest.param(
            ChannelHistory(NOON - HOUR, None, NOON - HOUR), None, True, id="missed at night"
        ),
        pytest.param(ChannelHistory(NOON, NOON, NOON - HOUR), None, False, id="told since"),
        pytest.param(
            ChannelHistory(NOON, None, NOON - HOUR), None, False, id="held back otherwise since"
        ),
        pytest.param(
            ChannelHistory(NOON, NOON - 2 * HOUR), HOUR, False, id="just held back otherwise"
        ),
        pytest.param(ChannelHistory(), HOUR, False, id="never its business"),
    ],
)
def test_when_a_channel_is_told_again(
    heard: ChannelHistory, every: timedelta | None, due: bool
) -> None:
    assert is_due_again(heard, every, NOON) is due


def test_a_digest_collects_and_keeps_its_distance() -> None:
    assert digest_due(NOON, None) == NOON + COLLECT
    assert digest_due(NOON, NOON - MINUTE) == NOON - MINUTE + APART
    assert digest_due(NOON, NOON - HOUR) == NOON + COLLECT
    assert summarise("a", 1, 1) == "a"
    assert summarise("a", 1200, 0) == "1,200 alerts: a"
