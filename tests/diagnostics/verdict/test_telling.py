"""The sentence of a verdict."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.verdict.cause import Cause, Finding
from diagnostics.verdict.verdicts import StoredVerdict
from diagnostics.verdict.wording import (
    ObservedChange,
    VerdictRate,
    describe_calm,
    describe_degradation,
    describe_unsure,
    part_words,
)

SINCE = datetime(2026, 11, 21, 14, 32, tzinfo=UTC)
FOUND = Finding(Cause.MODEL, "anthropic/haiku", 100.0, "truncated", prompts=5)
RATE = VerdictRate(128, 412, 0.04)


@pytest.mark.parametrize(
    ("deploy", "said"),
    [
        (timedelta(hours=-5), "5 prompt versions affected, last deploy before it:"),
        (timedelta(minutes=-40), "5 prompt versions affected, last deploy at"),
        (timedelta(minutes=20), "5 prompt versions affected, last deploy at"),
    ],
)
def test_the_last_deploy_is_near_the_onset_or_before_it(deploy: timedelta, said: str) -> None:
    told = describe_degradation("anthropic/haiku", RATE, SINCE, FOUND, SINCE + deploy)
    assert said in told.why
    assert told.why.endswith(f"{SINCE + deploy:%Y-%m-%d %H:%M} UTC.")
    assert told.reason[1] == SINCE + deploy


def test_no_deploy_is_spoken_of_where_none_was_told() -> None:
    told = describe_degradation("anthropic/haiku", RATE, SINCE, FOUND, None)
    assert told.why.endswith("5 prompt versions affected.")


def test_what_is_over_is_told_with_its_times() -> None:
    told = describe_calm(2, 300, (SINCE, SINCE + timedelta(hours=1)))
    assert told.reason[1::2] == (SINCE, SINCE + timedelta(hours=1))
    assert told.text == (
        "Both models within baseline. 300 calls evaluated. A degradation from"
        " 2026-11-21 14:32 UTC to 2026-11-21 15:32 UTC has ended."
    )


def test_failures_of_senders_that_report_no_success_are_said_to_have_no_rate() -> None:
    assert describe_unsure(0, 48).text == (
        "Not enough data. 0 calls evaluated. 48 failures without a rate: no success is reported."
    )


def test_a_sentence_is_kept_in_parts_and_read_back() -> None:
    deploy = SINCE - timedelta(hours=5)
    told = describe_degradation("anthropic/haiku", RATE, SINCE, FOUND, deploy)
    kept = StoredVerdict.model_validate({"state": "degrading", "told": told})
    kept = StoredVerdict.model_validate_json(json.dumps(kept.as_json()))
    assert kept.told == told
    head, since, rest = told.parts
    assert (head, since) == ("Degrading since ", SINCE)
    assert str(rest).startswith(": anthropic/haiku, 31")
    assert kept.wire == {"state": "degrading", "sentence": told.text}


def test_a_sentence_kept_as_text_is_one_whole() -> None:
    text = "Degrading since 14:32: x/y, 3.1 % of 412 runs. Looks like our prompt."
    told = StoredVerdict(sentence=text).told
    assert told is not None
    assert (told.text, told.headline, told.why) == (text, text, "")
    for kept in (text, text.rstrip(".")):
        assert StoredVerdict(sentence=kept).wire == {"sentence": kept}
    assert StoredVerdict().told is None
    assert StoredVerdict().wire == {}
    null = StoredVerdict.model_validate({"told": None, "sentence": text})
    assert null.told == told


def test_a_field_of_a_stored_verdict_that_is_not_as_today_has_its_default() -> None:
    advice = {"text": "Read samples.", "evidence": "", "later": 1}
    stored = {"advice": [advice], "runs": "many", "sentence": 7, "since": "soon", "cause": "prompt"}
    kept = StoredVerdict.model_validate(stored)
    assert (kept.advice, kept.runs, kept.since, kept.cause) == ((), 0, None, "prompt")


def test_a_time_of_day_long_past_is_told_with_its_day() -> None:
    late = describe_degradation("x/y", RATE, SINCE, FOUND, None, SINCE + timedelta(hours=26))
    assert late.headline.startswith("Degrading since 2026-11-21 14:32 UTC: x/y,")
    assert late.parts[1] == SINCE
    lately = describe_degradation("x/y", RATE, SINCE, FOUND, None, SINCE + timedelta(hours=2))
    assert lately.headline.startswith("Degrading since 14:32 UTC: x/y,")
    yesterday = describe_degradation("x/y", RATE, SINCE, FOUND, None, SINCE + timedelta(hours=12))
    assert yesterday.headline.startswith("Degrading since 2026-11-21 14:32 UTC: x/y,")


def test_a_sentence_in_a_zone_names_it_and_the_day_where_it_is_not_today() -> None:
    told = describe_degradation("x/y", RATE, SINCE, FOUND, None, SINCE)
    oslo = ZoneInfo("Europe/Oslo")
    today, _ = told.written(oslo, SINCE + timedelta(hours=2))
    assert today.startswith("Degrading since 15:32 Europe/Oslo: x/y,")
    tomorrow, _ = told.written(oslo, SINCE + timedelta(hours=9))
    assert tomorrow.startswith("Degrading since 21 Nov 15:32 Europe/Oslo: x/y,")


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        # Refused calls are a limit, not an outage.
        (
            Finding(Cause.PROVIDER_OUTAGE, "acme", top_kind="call_rate_limited"),
            "mostly rate limited. Looks like a limit of the provider: it refuses our calls (429).",
        ),
        (
            Finding(Cause.PROVIDER_OUTAGE, "acme", top_kind="call_provider_error"),
            "mostly provider errors. Looks like an outage of the provider, not us.",
        ),
        # A source of which no version is new is not called a deploy.
        (
            Finding(Cause.SOURCE, "crm", top_kind="not_json", models=2),
            "mostly not JSON. Looks like us: calls of crm fail more, at 2 models;"
            " no new version began with it.",
        ),
        (
            Finding(Cause.RELEASE, "crm 7", top_kind="refusal", models=1, is_new=True),
            "mostly refusals. Looks like our release crm 7: its calls fail more, at 1 model.",
        ),
    ],
)
def test_causes_and_kinds_are_told_in_words(finding: Finding, said: str) -> None:
    assert describe_degradation("x", RATE, SINCE, finding, None).text.endswith(said)


def test_little_is_told_apart_from_little_that_fails() -> None:
    assert describe_unsure(3).text == "Not enough data. 3 calls evaluated."
    assert "too few failures to tell" in describe_unsure(300).text


MARK = ObservedChange(ObservedKind.MODEL, "gpt-4o", "gpt-4o-mini", SINCE)


@pytest.mark.parametrize(
    ("cause", "is_told"),
    [
        (Cause.MODEL, True),
        (Cause.SERVED, True),
        (Cause.PROVIDER_OUTAGE, True),
        (Cause.MIXED, True),
        (Cause.NOT_ENOUGH_DATA, True),
        (Cause.PROMPT, False),
        (Cause.RELEASE, False),
    ],
)
def test_what_was_observed_to_change_is_told_unless_the_cause_is_ours(
    cause: Cause, is_told: bool
) -> None:
    finding = Finding(cause, "x", 100.0, "truncated")
    told = describe_degradation("openai/gpt-4o", RATE, SINCE, finding, None, observed=MARK)
    said = " The served model changed from gpt-4o to gpt-4o-mini at 2026-11-21 14:32 UTC."
    assert told.why.endswith(said) is is_told
    kept = StoredVerdict(told=told).as_json()
    assert StoredVerdict.model_validate_json(json.dumps(kept)).told == told


def test_the_kind_that_rose_most_is_not_said_to_be_most_failures_unless_it_is() -> None:
    told = describe_degradation("x/y", replace(RATE, is_mostly=False), SINCE, FOUND, None)
    assert told.headline.endswith("(baseline 4.0\u202f%), largest rise: truncated.")


def test_calls_and_runs_of_the_same_figures_are_told_once() -> None:
    calls, runs = (VerdictRate(7, 17, 0.04, noun) for noun in ("call", "run"))
    same = describe_degradation("x/y", replace(calls, beside=runs), SINCE, FOUND, None)
    assert "runs" not in same.text
    other = replace(calls, beside=replace(runs, bad=2, total=12))
    assert "; 2 of 12 runs degraded" in describe_degradation("x", other, SINCE, FOUND, None).text


def test_a_share_of_few_is_told_as_a_count() -> None:
    assert part_words(1.0, 1, "run") == "1 of 1 run"
    assert part_words(0.31, 412, "run").replace("\u202f", " ") == "31 % of 412 runs"
