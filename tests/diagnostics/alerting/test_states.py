"""How slices stand: a table of looks and what becomes of them."""

import pytest

from diagnostics.alerting.states import (
    HELD_SECONDS,
    AlertPhase,
    DetectorSignal,
    HoldTimes,
    NoData,
    SliceStatus,
    StateChange,
    acknowledged,
    advance,
    resolved,
)

HOUR = 60
ONCE = "firing fired", "resolved cleared"

FIRES, CLEARS, QUIET, NO_DATA = (
    DetectorSignal.FIRES,
    DetectorSignal.CLEARS,
    DetectorSignal.QUIET,
    DetectorSignal.NO_DATA,
)


def walk(hold_times: HoldTimes, *said: DetectorSignal) -> list[str]:
    """Look once a minute; give how it stood each time."""
    standing, stood = SliceStatus(), []
    for minute, one in enumerate(said):
        standing, happened = advance(minute * 60.0, standing, one, hold_times)
        stood.append(standing.state + (f" {happened}" if happened else ""))
    return stood


@pytest.mark.parametrize(
    ("hold_times", "said", "stood"),
    [
        # At once, and over at once.
        (HoldTimes(), (FIRES, CLEARS, QUIET), ["firing fired", "resolved cleared", "ok"]),
        # Between the two bounds nothing changes.
        (HoldTimes(), (FIRES, QUIET, FIRES), ["firing fired", "firing", "firing"]),
        # Patient: two minutes to fire; what stops earlier was nothing.
        (
            HoldTimes(for_seconds=120),
            (FIRES, FIRES, FIRES, FIRES),
            ["pending", "pending", "firing fired", "firing"],
        ),
        (HoldTimes(for_seconds=120), (FIRES, QUIET, FIRES), ["pending", "ok", "pending"]),
        # Patient to clear: what comes back meanwhile never was over.
        (
            HoldTimes(clear_seconds=60),
            (FIRES, CLEARS, FIRES, CLEARS, CLEARS),
            ["firing fired", "clearing", "firing", "clearing", "resolved cleared"],
        ),
        # What came back soon is over after an hour.
        (
            HoldTimes(),
            (FIRES, CLEARS, QUIET, FIRES, CLEARS, FIRES, CLEARS, *[QUIET] * (HOUR - 1), CLEARS),
            [
                *("firing fired", "resolved cleared", "ok", "firing fired", "clearing", "firing"),
                *["clearing"] * HOUR,
                "resolved cleared",
            ],
        ),
        (
            HoldTimes(),
            (FIRES, CLEARS, *[QUIET] * HOUR, FIRES, CLEARS),
            [*ONCE, *["ok"] * HOUR, *ONCE],
        ),
        # Latching: only a person ends it.
        (HoldTimes(is_latching=True), (FIRES, CLEARS), ["firing fired", "firing"]),
        # Without calls: kept, over, or the trouble itself.
        (HoldTimes(no_data=NoData.KEEP), (FIRES, NO_DATA), ["firing fired", "firing"]),
        (
            HoldTimes(no_data=NoData.CLEAR),
            (FIRES, NO_DATA, NO_DATA),
            ["firing fired", "no_data cleared", "no_data"],
        ),
        (HoldTimes(no_data=NoData.FIRE), (QUIET, NO_DATA), ["ok", "firing fired"]),
        (HoldTimes(), (QUIET, NO_DATA, QUIET), ["ok", "no_data", "ok"]),
    ],
    ids=str,
)
def test_looks_make_states(
    hold_times: HoldTimes, said: tuple[DetectorSignal, ...], stood: list[str]
) -> None:
    assert walk(hold_times, *said) == stood


def test_what_was_acknowledged_fires_on_and_clears() -> None:
    firing = SliceStatus(AlertPhase.FIRING, 0.0)
    seen = acknowledged(firing)
    assert seen.state is AlertPhase.ACKNOWLEDGED
    assert advance(60.0, seen, FIRES, HoldTimes())[0] == seen
    assert advance(60.0, seen, CLEARS, HoldTimes())[1] is StateChange.CLEARED
    waiting, _ = advance(60.0, seen, CLEARS, HoldTimes(clear_seconds=600))
    assert advance(120.0, waiting, FIRES, HoldTimes(clear_seconds=600))[0].state == seen.state
    clearing = SliceStatus(AlertPhase.CLEARING, 0.0)
    assert acknowledged(clearing).was is AlertPhase.ACKNOWLEDGED
    assert acknowledged(SliceStatus()) == SliceStatus()


def test_what_was_resolved_by_hand_waits_for_a_quiet_look_or_a_day() -> None:
    held = resolved(0.0, SliceStatus(AlertPhase.FIRING, 0.0))
    assert resolved(0.0, SliceStatus()) == SliceStatus()
    assert advance(60.0, held, FIRES, HoldTimes()) == (held, None)
    assert advance(60.0, held, DetectorSignal.NO_DATA, HoldTimes()) == (held, None)
    quiet, _ = advance(120.0, held, QUIET, HoldTimes())
    assert advance(180.0, quiet, FIRES, HoldTimes())[1] is StateChange.FIRED
    assert advance(HELD_SECONDS + 1.0, held, FIRES, HoldTimes())[1] is StateChange.FIRED
