"""S0-28 to S0-46, S0-62: the events of a degraded planner, and what never stands in them."""

import base64
import json
import logging
import random

import pytest

from agents.goals.models import Goal
from agents.tasks import run_goal
from failsoft.events import CallErrorType, ParseErrorType
from tests.agents.conftest import CALL_ECHO, FINISH, Planner, Record, events_named, tables_holding

PREVIEW_BYTES = 8 * 1024


@pytest.fixture
def degraded(planner: Planner) -> Record:
    """A goal with one answer that is no JSON and one that breaks the schema."""
    return planner.run("not json", '{"kind": "dance"}', correlation_id="run-8842")


def test_s0_28_one_event_per_invalid_attempt(degraded: Record) -> None:
    assert [event["attempt"] for event in events_named(degraded, "parse_invalid")] == [1, 2]


def test_s0_28_a_repaired_run_has_one(planner: Planner) -> None:
    record = planner.run("not json", CALL_ECHO, FINISH)

    assert [event["attempt"] for event in events_named(record, "parse_invalid")] == [1]


def test_s0_28_a_redelivered_task_adds_none(planner: Planner) -> None:
    planner.will_say("no", "no", "no", "no")
    goal = planner.submit()

    for _ in range(3):
        run_goal(str(goal.pk))
    record = planner.finish(goal)

    assert len(events_named(record, "parse_invalid")) == 2
    assert len(events_named(record, "degraded")) == 1


def test_s0_29_one_terminal_event_when_degraded(degraded: Record) -> None:
    assert len(events_named(degraded, "degraded")) == 1
    assert degraded["events"][-1]["name"].endswith(".degraded")


def test_s0_29_none_when_repaired(planner: Planner) -> None:
    record = planner.run("not json", CALL_ECHO, FINISH)

    assert events_named(record, "degraded") == []


def test_s0_30_the_name_of_event_a_is_verbatim(degraded: Record) -> None:
    names = {event["name"] for event in events_named(degraded, "parse_invalid")}

    assert names == {"graph.next_step.parse_invalid"}


def test_s0_31_every_event_carries_the_correlation_id_that_was_sent(degraded: Record) -> None:
    assert {event["correlation_id"] for event in degraded["events"]} == {"run-8842"}


def test_s0_32_the_cycle_counts_up(planner: Planner) -> None:
    record = planner.run("no", CALL_ECHO, "no", CALL_ECHO, "no", FINISH)

    assert [event["cycle"] for event in events_named(record, "parse_invalid")] == [1, 2, 3]


def test_s0_33_attempts_count_without_gaps(planner: Planner) -> None:
    record = planner.run({"text": "no", "repeat": True}, retry={"max_attempts": 5})

    invalid = events_named(record, "parse_invalid")
    assert [event["attempt"] for event in invalid] == [1, 2, 3, 4, 5]


def test_s0_34_the_provider_is_named(degraded: Record) -> None:
    assert {event["provider"] for event in degraded["events"]} == {"fake"}


def test_s0_35_the_model_is_named(degraded: Record) -> None:
    assert {event["model"] for event in degraded["events"]} == {"fake-1"}


def test_s0_36_error_types_come_from_a_closed_list_and_differ(degraded: Record) -> None:
    types = [event["parse_error_type"] for event in events_named(degraded, "parse_invalid")]

    assert types == ["not_json", "schema_invalid"]
    assert set(types) <= set(ParseErrorType)


def test_s0_37_validation_errors_are_a_list_of_concrete_items(degraded: Record) -> None:
    for event in events_named(degraded, "parse_invalid"):
        assert isinstance(event["validation_errors"], list)
        assert event["validation_errors"][0]["message"]
    assert events_named(degraded, "parse_invalid")[1]["validation_errors"][0]["path"] == "/kind"


def test_s0_38_the_preview_of_a_megabyte_is_cut(planner: Planner) -> None:
    record = planner.run("x" * 1_000_000, "y" * 1_048_576)

    for event in events_named(record, "parse_invalid"):
        assert 0 < len(event["raw_output_preview"].encode()) <= PREVIEW_BYTES
    assert all(len(row["preview"].encode()) <= PREVIEW_BYTES for row in record["attempts"])


def test_s0_39_the_name_of_event_b_is_verbatim(degraded: Record) -> None:
    assert degraded["events"][-1]["name"] == "graph.next_step.degraded"


def test_s0_40_event_b_agrees_with_the_a_events(degraded: Record) -> None:
    *invalid, terminal = degraded["events"]

    for name in ("correlation_id", "cycle", "provider", "model"):
        assert {event[name] for event in invalid} == {terminal[name]}


@pytest.mark.parametrize("max_attempts", [1, 2, 3])
def test_s0_41_event_b_counts_the_a_events(planner: Planner, max_attempts: int) -> None:
    record = planner.run({"text": "no", "repeat": True}, retry={"max_attempts": max_attempts})

    (terminal,) = events_named(record, "degraded")
    assert terminal["attempts"] == len(events_named(record, "parse_invalid")) == max_attempts


def test_s0_42_the_reason_is_verbatim(degraded: Record) -> None:
    assert degraded["events"][-1]["reason"] == "next_step_parse_failed"


def test_s0_43_the_status_is_verbatim(degraded: Record) -> None:
    assert degraded["events"][-1]["status"] == "failed"


@pytest.mark.parametrize("letter", ["é", "漢", "🙂", "e\u0301"])
@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_s0_44_text_of_several_bytes_is_cut_between_characters(
    planner: Planner, letter: str, shift: int
) -> None:
    record = planner.run("a" * shift + letter * PREVIEW_BYTES, "no")

    preview = events_named(record, "parse_invalid")[0]["raw_output_preview"]
    assert preview.startswith("a" * shift + letter)
    assert len(preview.encode()) <= PREVIEW_BYTES


def make_secrets(seed: int = 45) -> dict[str, tuple[str, str]]:
    """A text for each kind of secret, and the value in it; made anew, written nowhere."""
    chance = random.Random(seed)

    def token(length: int) -> str:
        letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
        return "".join(chance.choices(letters, k=length))

    def part(value: dict[str, str]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    signed = f"{part({'alg': 'HS256'})}.{part({'sub': token(12)})}.{token(43)}"
    values = {
        "openai": ("{}", f"sk-{token(48)}"),
        "bearer": ("Authorization: Bearer {}", token(40)),
        "json": ('{{"api_key": "{}"}}', token(32)),
        "password": ("Password: {}", token(16)),
        "aws": ("{}", "AKIA" + token(16).upper().replace("0", "A")),
        "github": ("{}", f"ghp_{token(36)}"),
        "jwt": ("{}", signed),
    }
    return {kind: (text.format(value), value) for kind, (text, value) in values.items()}


SECRETS = make_secrets()


@pytest.mark.parametrize("kind", list(SECRETS))
def test_s0_45_a_secret_in_a_reply_is_nowhere(
    planner: Planner, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    text, value = SECRETS[kind]
    caplog.set_level(logging.DEBUG)

    record = planner.run(f"Here you are: {text} and more", json.dumps({"kind": text}))

    assert record["status"] == "failed"
    assert value not in json.dumps(record)
    assert tables_holding(value) == []
    assert value not in caplog.text


@pytest.mark.parametrize("kind", list(SECRETS))
def test_s0_46_a_secret_in_a_prompt_is_nowhere(
    planner: Planner, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    text, value = SECRETS[kind]
    caplog.set_level(logging.DEBUG)

    record = planner.run("no", "no", goal=f"Sign in with {text} and look around")

    assert value in planner.prompts[0]
    assert value not in json.dumps(record)
    assert tables_holding(value) == []
    assert value not in caplog.text


def test_s0_46_a_prompt_is_kept_and_logged_nowhere(
    planner: Planner, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    planner.run("no", "no")

    line = planner.prompts[0].splitlines()[-1]
    assert line == "Answer with the JSON object only."
    assert tables_holding(line) == []
    assert tables_holding(planner.script.requests[0].system) == []
    assert line not in caplog.text


def test_s0_62_events_hold_validation_details_and_counts(degraded: Record) -> None:
    first, second, terminal = degraded["events"]

    assert (first["attempt"], second["attempt"], terminal["attempts"]) == (1, 2, 2)
    assert first["validation_errors"][0]["line"] == 1
    assert second["validation_errors"][0]["path"] == "/kind"


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        ("timeout", Goal.Outcome.PROVIDER_FAILED, "timeout"),
        ("refused", Goal.Outcome.PROVIDER_FAILED, "provider_failed"),
    ],
)
def test_a_call_without_an_answer_is_no_parse_failure(
    planner: Planner, error: str, outcome: str, reason: str
) -> None:
    record = planner.run({"error": error, "repeat": True})

    assert record["outcome"] == outcome
    assert record["last_validation_error"] is None
    assert events_named(record, "parse_invalid") == []
    assert events_named(record, "degraded")[0]["reason"] == reason
    assert record["attempts"][0]["error_type"] in set(CallErrorType)
