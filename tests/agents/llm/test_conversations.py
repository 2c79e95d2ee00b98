"""The same conversation through every adapter: the same prompts, the same course, the same end."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.agents.conftest import PLAN, Planner, Record, events_named
from tests.agents.llm.wires import (
    PATHS,
    Break,
    Err,
    Fault,
    Hang,
    Malformed,
    Reset,
    Say,
    Stall,
    Turn,
    Wire,
)

ADAPTERS = ("openai", "anthropic")
GOAL = "Greet “Zoë” and say {hello}"
CUT = '{"steps": [{"step_id": "step_1", "tool": {"na'
WRONG = '{"steps": [{"step_id": "step_1"}]}'
GARBAGE = "Sure! I would begin by saying hello."
NO = "I cannot help with that."


@dataclass(frozen=True)
class Course:
    """What came of a conversation: each attempt's state and error, the outcome, the calls."""

    attempts: tuple[tuple[str, str | None], ...]
    outcome: str
    retries: int = 0


VALID = ("valid", None)


def invalid(kind: str) -> tuple[str, str]:
    return "invalid", kind


def failed(kind: str) -> tuple[str, str]:
    return "call_failed", kind


CONVERSATIONS: dict[str, tuple[list[Turn], Course]] = {
    "good at once": ([Say(PLAN)], Course((VALID,), "ok_first")),
    "prose, then good": (
        [Say(GARBAGE), Say(PLAN)],
        Course((invalid("not_json"), VALID), "repaired"),
    ),
    "schema broken, then good": (
        [Say(WRONG), Say(PLAN)],
        Course((invalid("schema_invalid"), VALID), "repaired"),
    ),
    "cut at the token limit, then good": (
        [Say(CUT, cut=True), Say(PLAN)],
        Course((invalid("truncated"), VALID), "repaired"),
    ),
    "cut at the token limit, of which no more is allowed, then good": (
        [Say(CUT, cut=True), Fault(400), Say(PLAN)],
        Course((invalid("truncated"), VALID), "repaired"),
    ),
    "refused, then good": (
        [Say(NO, refused=True), Say(PLAN)],
        Course((invalid("refusal"), VALID), "repaired"),
    ),
    "empty, then good": (
        [Say(""), Say(PLAN)],
        Course((invalid("empty_output"), VALID), "repaired"),
    ),
    "never good": (
        [Say(GARBAGE), Say(WRONG)],
        Course((invalid("not_json"), invalid("schema_invalid")), "degraded"),
    ),
    "429 with Retry-After, then good": (
        [Fault(429, "0.2"), Say(PLAN)],
        Course((VALID,), "ok_first", retries=1),
    ),
    "429 that asks for a wait that the goal has time for, then good": (
        [Fault(429, "20"), Say(GARBAGE), Fault(429, "7"), Fault(429, "8"), Say(PLAN)],
        Course((invalid("not_json"), VALID), "repaired", retries=3),
    ),
    "429 that asks for too long a wait": (
        [Fault(429, "3600")],
        Course((failed("rate_limited"),), "provider_failed"),
    ),
    "429 that names no time, then good": (
        [Fault(429), Fault(429), Fault(429), Say(PLAN)],
        Course((VALID,), "ok_first", retries=3),
    ),
    "503 twice, then good": (
        [Fault(503), Fault(503), Say(PLAN)],
        Course((VALID,), "ok_first", retries=2),
    ),
    "500 for ever": (
        [Fault(500)] * 3,
        Course((failed("provider_error"),), "provider_failed", retries=2),
    ),
    "401": ([Fault(401)], Course((failed("provider_error"),), "provider_failed")),
    "reset, then good": ([Reset(), Say(PLAN)], Course((VALID,), "ok_first", retries=1)),
    "hangs, then good": ([Hang(), Say(PLAN)], Course((failed("timeout"), VALID), "repaired")),
    "an envelope that is none": (
        [Malformed(b"<html>gateway</html>")],
        Course((failed("provider_error"),), "provider_failed"),
    ),
    "an envelope without its content": (
        [Malformed(b'{"id": "1"}')],
        Course((failed("provider_error"),), "provider_failed"),
    ),
    "503, prose, reset, good": (
        [Fault(503), Say(GARBAGE), Reset(), Say(PLAN)],
        Course((invalid("not_json"), VALID), "repaired", retries=2),
    ),
}


STREAMED: dict[str, tuple[list[Turn], Course]] = {
    "reset before a word, then good": (
        [Break(""), Say(PLAN)],
        Course((VALID,), "ok_first", retries=1),
    ),
    "closed before a word, then good": (
        [Break("", "closed"), Say(PLAN)],
        Course((VALID,), "ok_first", retries=1),
    ),
    "reset in the middle, then good": (
        [Break(CUT), Say(PLAN)],
        Course((invalid("truncated"), VALID), "repaired"),
    ),
    "closed in the middle, then good": (
        [Break(CUT, "closed"), Say(PLAN)],
        Course((invalid("truncated"), VALID), "repaired"),
    ),
    "closed after the plan, before the end": (
        [Break(PLAN, "closed")],
        Course((VALID,), "ok_first"),
    ),
    "an error in the stream, then good": (
        [Err(CUT), Say(PLAN)],
        Course((VALID,), "ok_first", retries=1),
    ),
    "stalls in the middle, then good": (
        [Stall(CUT), Say(PLAN)],
        Course((failed("timeout"), VALID), "repaired"),
    ),
    "drips beyond its time, then good": (
        [Stall(CUT, drips=True), Say(PLAN)],
        Course((failed("timeout"), VALID), "repaired"),
    ),
}


def converse(
    planner: Planner, wire: Wire, *, streaming: bool = False, seconds: int = 20, **order: Any
) -> Record:
    """Run a goal whose provider is the wire; a busy machine takes a second to begin, too."""
    provider = planner.language_model.provider
    provider.adapter, provider.base_url = wire.adapter, wire.base_url
    provider.save()
    planner.language_model.attempt_timeout_seconds = seconds
    planner.language_model.streaming = streaming
    planner.language_model.save()
    order = {"goal": GOAL, "mode": "plan"} | order
    return planner.finish(planner.submit(**order))


def course_of(record: Record) -> Course:
    """What the record tells of the conversation."""
    attempts = tuple((row["state"], row["error_type"]) for row in record["attempts"])
    retries = sum(row["transport_retries"] for row in record["attempts"])
    return Course(attempts, record["outcome"], retries)


# The faults before an answer begins are the same whether it is streamed or not: one of each.
ALSO_STREAMED = (
    "good at once",
    "schema broken, then good",
    "cut at the token limit, then good",
    "refused, then good",
    "empty, then good",
    "429 with Retry-After, then good",
    "503, prose, reset, good",
    "hangs, then good",
    "an envelope that is none",
    "an envelope without its content",
)
TALKS = [(name, False) for name in CONVERSATIONS] + [(name, True) for name in ALSO_STREAMED]


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("name", "streaming"), TALKS)
def test_s1_3_and_s1_83_a_conversation_takes_the_same_course_through_every_adapter(
    planner: Planner, adapter: str, name: str, streaming: bool
) -> None:
    turns, course = CONVERSATIONS[name]
    with Wire(adapter, list(turns)) as wire:
        seconds = 1 if failed("timeout") in course.attempts else 20
        record = converse(planner, wire, streaming=streaming, seconds=seconds)

        assert course_of(record) == course
        assert wire.is_at_its_end
        assert set(wire.paths) == {PATHS[adapter]}


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("turns", "course"), STREAMED.values(), ids=list(STREAMED))
def test_a_stream_that_breaks_off_is_a_failed_call_or_an_answer_that_was_cut(
    planner: Planner, adapter: str, turns: list[Turn], course: Course
) -> None:
    with Wire(adapter, turns) as wire:
        record = converse(planner, wire, streaming=True, seconds=1)

        assert course_of(record) == course
        assert wire.is_at_its_end
    assert all(row["latency_ms"] < 3_000 for row in record["attempts"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "turns",
    [
        [Say(GARBAGE), Say(PLAN)],
        [Say(CUT, cut=True), Say(WRONG)],
        [Fault(503), Say(NO, refused=True), Say(PLAN)],
    ],
)
def test_s1_3_and_s1_86_the_prompts_are_the_same_to_the_byte(
    planner: Planner, turns: Sequence[Turn]
) -> None:
    recorded = {}
    for adapter in ADAPTERS:
        with Wire(adapter, list(turns)) as wire:
            converse(planner, wire, correlation_id=adapter)
            recorded[adapter] = wire.prompts

    assert recorded["openai"] == recorded["anthropic"]
    assert GOAL.encode() in recorded["openai"][0][1]
    assert recorded["openai"][0] != recorded["openai"][-1]


def test_s1_3_and_s1_86_a_scripted_provider_is_given_the_same_prompts_too(planner: Planner) -> None:
    planner.run(GARBAGE, PLAN, goal=GOAL, mode="plan")
    scripted = [
        (request.system.encode(), request.user.encode()) for request in planner.script.requests
    ]

    with Wire("openai", [Say(GARBAGE), Say(PLAN)]) as wire:
        converse(planner, wire)

        assert wire.prompts == scripted


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_s1_69_and_s1_88_a_fault_of_the_wire_is_neither_an_attempt_nor_feedback(
    planner: Planner, adapter: str
) -> None:
    with Wire(adapter, [Reset(), Fault(502), Say(PLAN)]) as wire:
        record = converse(planner, wire)

        assert len(set(wire.prompts)) == 1
    assert [row["attempt"] for row in record["attempts"]] == [1]
    assert events_named(record, "parse_invalid") == []


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_s1_76_an_attempt_that_hangs_ends_in_its_time(planner: Planner, adapter: str) -> None:
    with Wire(adapter, [Hang(), Hang()]) as wire:
        record = converse(planner, wire, seconds=1)

    assert course_of(record).attempts == (failed("timeout"), failed("timeout"))
    # Its time is a second; the wire hangs until it is closed.
    assert all(900 <= row["latency_ms"] < 30_000 for row in record["attempts"])
    assert record["outcome"] == "provider_failed"


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_tool_calls_are_applied_whichever_adapter_they_come_through(
    planner: Planner, adapter: str, streaming: bool
) -> None:
    entries = {"entries": [{"content": "milk", "category": "todo"}]}
    call = ("call_1", "create_entries", entries)
    with Wire(adapter, [Say("Of course.", calls=(call,))]) as wire:
        record = converse(planner, wire, mode="actions", toolset="entries", streaming=streaming)

    assert record["status"] == "completed"
    assert [item["content"] for item in record["applied"]] == ["milk"]


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_usage_and_finish_reason_come_through_every_adapter(
    planner: Planner, adapter: str, streaming: bool
) -> None:
    with Wire(adapter, [Say(CUT, cut=True), Say(PLAN)]) as wire:
        record = converse(planner, wire, streaming=streaming)

    assert [row["finish_reason"] for row in record["attempts"]] == ["length", "stop"]
    assert {row["input_tokens"] for row in record["attempts"]} == {7}
    assert {row["output_tokens"] for row in record["attempts"]} == {5}


@pytest.mark.parametrize(
    ("adapter", "of_model", "sent"),
    [("openai", 0.2, 0.2), ("openai", None, None), ("anthropic", 0.2, None)],
)
def test_a_temperature_that_was_not_sent_is_not_recorded(
    planner: Planner, adapter: str, of_model: float | None, sent: float | None
) -> None:
    planner.language_model.temperature = of_model
    with Wire(adapter, [Say(PLAN)]) as wire:
        record = converse(planner, wire)
        asked = json.loads(wire.bodies[0])

    assert asked.get("temperature") == sent
    assert [row["temperature"] for row in record["attempts"]] == [sent]
