"""The sentence of a verdict."""

from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.core.verdict.cause import Finding
from diagnostics.core.verdict.suspects import Cause
from diagnostics.core.verdict.telling import Rate, read_parts, tell, tell_calm

SINCE = datetime(2026, 11, 21, 14, 32, tzinfo=UTC)
FOUND = Finding(Cause.MODEL, "anthropic/haiku", 100.0, "truncated", prompts=5)
RATE = Rate(128, 412, 0.04)


@pytest.mark.parametrize(
    ("deploy", "said"),
    [
        (timedelta(hours=-5), "5 prompt versions affected, no deploy since"),
        (timedelta(minutes=-40), "5 prompt versions affected, last deploy at"),
        (timedelta(minutes=20), "5 prompt versions affected, last deploy at"),
    ],
)
def test_a_deploy_is_near_the_onset_or_ruled_out(deploy: timedelta, said: str) -> None:
    told = tell("anthropic/haiku", RATE, SINCE, FOUND, SINCE + deploy)
    assert said in told.why
    assert told.why.endswith(f"{SINCE + deploy:%Y-%m-%d %H:%M} UTC.")
    assert told.reason[1] == SINCE + deploy


def test_no_deploy_is_spoken_of_where_none_was_told() -> None:
    told = tell("anthropic/haiku", RATE, SINCE, FOUND, None)
    assert told.why.endswith("5 prompt versions affected.")


def test_what_is_over_is_told_with_its_times() -> None:
    told = tell_calm(2, 300, (SINCE, SINCE + timedelta(hours=1)))
    assert told.reason[1::2] == (SINCE, SINCE + timedelta(hours=1))
    assert told.text == (
        "All 2 models within baseline. 300 calls looked at. A degradation from"
        " 2026-11-21 14:32 UTC to 2026-11-21 15:32 UTC is over."
    )


def test_a_sentence_kept_as_text_gives_its_times_back() -> None:
    deploy = SINCE - timedelta(hours=5)
    told = tell("anthropic/haiku", RATE, SINCE, FOUND, deploy)
    head, since, middle, at, end = read_parts(told.text, SINCE)
    assert (head, since, at, end) == ("Degrading since ", SINCE, deploy, ".")
    assert str(middle).startswith(": anthropic/haiku, 31")
    assert read_parts("Nothing of the kind.", SINCE) == ["Nothing of the kind."]
    never = "At 2026-99-99 10:00 UTC."
    assert read_parts(never, None) == ["At ", "2026-99-99 10:00 UTC", "."]
