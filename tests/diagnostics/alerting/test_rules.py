"""Who is told, when again, how often: tables of the pure rules."""

from datetime import UTC, datetime, time, timedelta

import pytest

from diagnostics.alerting.delivery import PAUSES, next_pause
from diagnostics.alerting.incident_models import Incident, Transition
from diagnostics.alerting.notification_facts import APART, COLLECT, digest_due, summarise
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.notification_models import NotificationReason as Reason
from diagnostics.alerting.notification_rows import Notice, decide
from diagnostics.alerting.reminders import ChannelHistory, is_due_again

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
QUIET = {"quiet_from": time(22), "quiet_to": time(7), "zone": "Europe/Berlin"}
NIGHT = Channel(min_severity="info", **QUIET)
OPEN, ALL = Channel(min_severity="warning"), Channel(min_severity="info")
State = Notification.State


def notice(
    severity: str, at: datetime = NOON, held_by: str = "", reason: Reason = Reason.FIRED
) -> Notice:
    return Notice(Incident(), Transition(), reason, severity, at, held_by)


def recovery(at: datetime = NOON, held_by: str = "") -> Notice:
    return notice("critical", at, held_by, Reason.RECOVERED)


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
    assert NIGHT.is_in_quiet_hours(datetime.fromisoformat(at).replace(tzinfo=UTC)) is quiet


def test_quiet_hours_within_a_day() -> None:
    lunch = Channel(quiet_from=time(12), quiet_to=time(13))
    assert lunch.is_in_quiet_hours(NOON)
    assert not lunch.is_in_quiet_hours(NOON + HOUR)


@pytest.mark.parametrize(
    ("channel", "sent", "news", "alerts", "became", "why"),
    [
        pytest.param(OPEN, 0, notice("warning"), None, State.QUEUED, "", id="told"),
        pytest.param(
            OPEN, 0, notice("info"), None, State.SUPPRESSED, "below warning", id="too small"
        ),
        pytest.param(
            OPEN,
            0,
            notice("critical", held_by="a silence"),
            None,
            State.SUPPRESSED,
            "a silence",
            id="silenced",
        ),
        pytest.param(
            NIGHT,
            0,
            notice("critical", NOON + 10 * HOUR),
            None,
            State.SUPPRESSED,
            "quiet hours, 22:00 to 07:00 Europe/Berlin",
            id="quiet",
        ),
        pytest.param(
            NIGHT,
            0,
            recovery(NOON + 10 * HOUR),
            0,
            State.QUEUED,
            "",
            id="a recovery closes the alert in quiet hours too",
        ),
        pytest.param(
            OPEN,
            0,
            recovery(held_by="a silence"),
            0,
            State.SUPPRESSED,
            "a silence",
            id="no recovery under a silence",
        ),
        pytest.param(
            OPEN,
            0,
            recovery(held_by="a silence"),
            1,
            State.QUEUED,
            "",
            id="what opened an alert closes it under a silence too",
        ),
        pytest.param(
            Channel(min_severity="info", kind=Channel.Kind.EMAIL),
            0,
            recovery(held_by="a silence"),
            1,
            State.SUPPRESSED,
            "a silence",
            id="a mail opened no alert",
        ),
        pytest.param(
            OPEN,
            0,
            recovery(),
            None,
            State.SUPPRESSED,
            "not notified",
            id="a recovery of what nobody heard of",
        ),
        pytest.param(ALL, 9, notice("info"), None, State.QUEUED, "", id="the tenth of the hour"),
        pytest.param(
            ALL, 10, notice("info"), None, State.DIGESTED, "more than 10", id="the eleventh"
        ),
        pytest.param(
            ALL,
            10,
            recovery(),
            1,
            State.QUEUED,
            "",
            id="what opened an alert closes it though it is the eleventh",
        ),
    ],
)
def test_what_a_channel_is_told(
    channel: Channel, sent: int, news: Notice, alerts: int | None, became: str, why: str
) -> None:
    state, reason = decide(news, channel, sent, alerts)
    assert state == became
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
