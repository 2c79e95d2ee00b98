"""What costs much is kept for a moment, and made anew beside whoever asks."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import pytest

from diagnostics.store.kept_answers import (
    MOST_KEPT,
    AnswerPendingError,
    CachedResult,
    ResultCache,
    limited_wait,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SOON, LATE = NOON + timedelta(seconds=15), NOON + timedelta(seconds=60)


@pytest.fixture(autouse=True)
def ten_seconds(settings: Any) -> None:
    settings.FAILSOFT_VERDICT_SECONDS = 10


@pytest.fixture(autouse=True)
def shown_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diagnostics.clock.now", lambda: SOON)


def make(at: datetime) -> str:
    return f"made {at:%H:%M:%S}"


def test_an_answer_is_given_again_for_a_while() -> None:
    kept: ResultCache[str] = ResultCache()
    first = kept.get("a", NOON, make)
    assert first == CachedResult(NOON, "made 12:00:00")
    assert kept.get("a", NOON + timedelta(seconds=9), make) is first
    assert kept.get("b", SOON, make).answer == "made 12:00:15"


def test_a_clock_that_is_set_back_does_not_freeze_an_answer() -> None:
    kept: ResultCache[str] = ResultCache()
    kept.get("a", NOON, make)
    # Whoever read the clock a moment before the answer was made shares it.
    assert kept.get("a", NOON - timedelta(seconds=9), make).answer == "made 12:00:00"
    assert kept.get("a", NOON - timedelta(hours=1), make).answer == "made 11:00:00"


def test_an_older_one_is_given_too_and_made_anew_once_beside() -> None:
    works: list[Callable[[], None]] = []
    kept: ResultCache[str] = ResultCache(beside=works.append)
    first = kept.get("a", NOON, make)
    assert kept.get("a", SOON, make) is first
    assert kept.get("a", SOON, make) is first
    (work,) = works
    work()
    assert kept.get("a", SOON, make) == CachedResult(SOON, "made 12:00:15")


def test_whoever_comes_after_a_minute_waits_for_a_new_one() -> None:
    works: list[Callable[[], None]] = []
    kept: ResultCache[str] = ResultCache(beside=works.append)
    kept.get("a", NOON, make)
    assert kept.get("a", LATE, make).answer == "made 12:01:00"
    assert not works


def test_one_that_cannot_be_renewed_is_tried_again() -> None:
    works: list[Callable[[], None]] = []
    kept: ResultCache[str] = ResultCache(beside=works.append)
    first = kept.get("a", NOON, make)

    def fail(at: datetime) -> str:
        raise RuntimeError(at)

    assert kept.get("a", SOON, fail) is first
    works.pop()()
    assert kept.get("a", SOON, make) is first
    works.pop()()
    assert kept.get("a", SOON, make).answer == "made 12:00:15"


def test_an_answer_that_fails_leaves_nothing_behind() -> None:
    kept: ResultCache[str] = ResultCache()

    def fail(at: datetime) -> str:
        raise RuntimeError(at)

    for key in range(3):
        with pytest.raises(RuntimeError):
            kept.get(key, NOON, fail)
    assert not kept._locks


def test_two_who_ask_at_once_share_one() -> None:
    kept: ResultCache[str] = ResultCache()
    begun, may_go = Event(), Event()
    made: list[datetime] = []

    def make_slowly(at: datetime) -> str:
        made.append(at)
        begun.set()
        may_go.wait(5)
        return make(at)

    askers = [Thread(target=kept.get, args=("a", NOON, make_slowly)) for _ in range(2)]
    askers[0].start()
    begun.wait(5)
    askers[1].start()
    may_go.set()
    for asker in askers:
        asker.join(5)
    assert made == [NOON]


def test_who_is_in_a_hurry_leaves_a_slow_one_to_be_made_beside() -> None:
    works: list[Callable[[], None]] = []
    kept: ResultCache[str] = ResultCache(beside=works.append)
    for _ in range(2):
        with limited_wait(0.01), pytest.raises(AnswerPendingError):
            kept.get("a", NOON, make)
    (work,) = works
    work()
    with limited_wait(0.01):
        assert kept.get("a", SOON, make).answer == "made 12:00:15"


def test_who_is_in_a_hurry_gets_a_quick_one_at_once() -> None:
    kept: ResultCache[str] = ResultCache(beside=lambda work: work())
    with limited_wait(0.01):
        assert kept.get("a", SOON, make).answer == "made 12:00:15"


def test_a_hurry_can_be_put_off_for_what_cannot_be_completed_later() -> None:
    kept: ResultCache[str] = ResultCache(beside=lambda _: None)
    with limited_wait(0.01), limited_wait(None):
        assert kept.get("a", NOON, make).answer == "made 12:00:00"


def test_one_that_was_made_while_its_renewal_waited_is_not_made_again() -> None:
    works: list[Callable[[], None]] = []
    kept: ResultCache[str] = ResultCache(beside=works.append)
    with limited_wait(0.01), pytest.raises(AnswerPendingError):
        kept.get("a", SOON, make)
    first = kept.get("a", SOON, make)
    works.pop()()
    assert kept.get("a", SOON, make) is first


def test_without_a_time_every_look_asks(settings: Any) -> None:
    settings.FAILSOFT_VERDICT_SECONDS = 0
    kept: ResultCache[str] = ResultCache()
    assert kept.get("a", NOON, make) == kept.get("a", NOON, make)
    assert kept.get("a", SOON, make).answer == "made 12:00:15"


def test_no_more_are_kept_than_there_is_room_for() -> None:
    kept: ResultCache[str] = ResultCache()
    for number in range(MOST_KEPT + 1):
        kept.get(number, NOON, make)
    assert kept.get(MOST_KEPT, SOON - timedelta(seconds=6), make).at == NOON
    assert kept.get(0, SOON - timedelta(seconds=6), make).at != NOON
