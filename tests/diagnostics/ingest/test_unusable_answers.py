"""What cannot be used is a failure, through every door, with and without a schema."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.api.events import post_items
from diagnostics.ingest.otlp.protobuf import read_logs, read_spans
from diagnostics.ingest.receiving import receive_logs, receive_spans
from diagnostics.store.models import Event, EventPayload
from tests.diagnostics.otlp_bodies import log_record, logs, span, traces

pytestmark = pytest.mark.django_db
Answer = dict[str, Any]
Door = Callable[[ApiKey, Answer], None]

ROUTE = {"type": "object", "required": ["from"], "properties": {"from": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": "find_route", "parameters": ROUTE}},
    {"name": "book_seat", "input_schema": {"type": "object"}},
]
ITINERARY: dict[str, Any] = {"title": "Itinerary", "type": "object", "required": ["legs"]}


def called(name: object, arguments: object, **fields: Any) -> Answer:
    return {"tool_calls": [{"name": name, "arguments": arguments}], "tools": TOOLS, **fields}


def written(text: str) -> Answer:
    return {"text": text, "tools": TOOLS, "finish_reason": "stop"}


UNUSABLE: dict[str, list[Answer]] = {
    "empty_output": [
        {"text": "", "finish_reason": "stop"},
        {"text": None, "finish_reason": "end_turn"},
        {"text": " \n\t "},
        {"text": "", "tools": TOOLS, "finish_reason": "COMPLETE"},
        {"text": "", "finish_reason": "OTHER"},
        {"text": "\n", "finish_reason": "a reason of next year"},
        # Thinking alone.
        {"text": "<think>Which city?</think>", "finish_reason": "stop"},
        {"text": "<thinking>\nTwo legs.\n</thinking>\n\n"},
        {"text": "[THINK]Oslo first.[/THINK]", "finish_reason": "stop"},
        {"text": "The user wants a train.</think>\n"},
        {"text": "◁think▷Night trains only.◁/think▷"},
        {"text": "", "finish_reason": "stop", "output_tokens": 64, "reasoning_tokens": 64},
    ],
    "refusal": [
        {"text": "", "finish_reason": "content_filter"},
        {"text": "The train leaves at", "finish_reason": "SAFETY"},
        {"text": "Not this one.", "finish_reason": "guardrail_intervened", "tools": TOOLS},
        {"text": '{"legs": []}', "finish_reason": "PROHIBITED_CONTENT"},
        {"text": "", "finish_reason": "refusal", "tools": TOOLS},
        called("find_route", '{"from": "Oslo"}', finish_reason="content_filtered"),
    ],
    "truncated": [
        {"text": "Take the night train to", "finish_reason": "length"},
        {"text": "", "finish_reason": "MAX_TOKENS", "tools": TOOLS},
        {"text": '{"legs": [{"from": "Os', "finish_reason": "model_length"},
        {"text": "", "finish_reason": "length", "output_tokens": 9, "reasoning_tokens": 9},
        {"text": "Take the", "finish_reason": "stream_cut"},
        # Thinking alone that never ended.
        {"text": "<think>Two legs, or three", "finish_reason": "stop"},
        {"text": "[THINK]Oslo first", "finish_reason": "stop"},
        {"text": "<|channel|>analysis<|message|>Night trains only", "finish_reason": "stop"},
        called("find_route", '{"from": "Os', finish_reason="tool_calls"),
        called("find_route", '{"from": "Os', finish_reason="max_tokens"),
        called("book_seat", '{"seats": [1, 2', finish_reason="stop"),
    ],
    "not_json": [
        {"text": "", "finish_reason": "MALFORMED_FUNCTION_CALL", "tools": TOOLS},
        {"text": "call:find_route", "finish_reason": "UNEXPECTED_TOOL_CALL"},
        {"text": "", "finish_reason": "malformed_tool_use"},
        # Calls as markup.
        written('<tool_call>\n{"name": "find_route", "arguments": {"from": "Oslo"}}\n</tool_call>'),
        written('<invoke name="book_seat">\n<parameter name="seat">4</parameter>\n</invoke>'),
        written('[TOOL_CALLS]book_seat[ARGS]{"seat": 4}'),
        written(
            "<｜DSML｜tool_calls>\n"  # noqa: RUF001 - as the model writes it
            '<｜DSML｜invoke name="find_route">\n</｜DSML｜invoke>'  # noqa: RUF001
        ),
        written("Let me look.\n<function=book_seat>\n<parameter=seat>\n4\n</parameter>"),
    ],
    "schema_invalid": [
        # Tools that were not offered, or names that were broken.
        called("book_train", '{"seat": 4}', finish_reason="tool_calls"),
        called("functions.book_seat", "{}", finish_reason="tool_calls"),
        called("book_seat</arg_value>", "{}", finish_reason="stop"),
        called("", '{"from": "Oslo"}', finish_reason="tool_calls"),
        called("  ", "{}"),
        called("book_seat" * 40, "{}"),
        called("find_route", '{"to": "Oslo"}', finish_reason="tool_calls"),
    ],
}
CASES = [(kind, answer) for kind, answers in UNUSABLE.items() for answer in answers]
USABLE: list[Answer] = [
    {"text": "Take the night train.", "finish_reason": "stop"},
    {"text": "The server parses <tool_call> tags by itself.", "tools": TOOLS},
    {"text": "[1] Oslo\n[2] Bergen"},
    {"text": "[1 of 2] Oslo"},
    {"text": "Some models write <think> first."},
    {"text": "<p>Some models write <think> first.</p>"},
    {"text": "<p>Take the <b>night</b> train.</p>", "finish_reason": "end_turn"},
    {"text": '{"note": "<tool_call>\\n{}"}', "tools": TOOLS},
    {"text": "Oslo.", "output_tokens": 9, "reasoning_tokens": 9, "finish_reason": "stop"},
    {"text": "Oslo.", "finish_reason": "a reason of next year"},
]


def by_post(key: ApiKey, answer: Answer) -> None:
    item: Answer = {
        "name": "answered",
        "node": "trips",
        "correlation_id": "trip-1",
        "occurred_at": clock.now().isoformat(),
        "attempt": 1,
    }
    post_items(key.project_id, [{**item, **answer}], b"", 1.0)


def by_span(key: ApiKey, answer: Answer) -> None:
    message = {"role": "assistant", **message_of(answer)}
    told = {"gen_ai.output.messages": json.dumps([message]), **request_of(answer)}
    send(key, told | {"gen_ai.response.finish_reasons": [answer.get("finish_reason", "")]})


def by_openinference(key: ApiKey, answer: Answer) -> None:
    message = "llm.output_messages.0.message."
    told = {f"{message}role": "assistant", f"{message}content": answer.get("text") or ""}
    for number, call in enumerate(answer.get("tool_calls", ())):
        function = f"{message}tool_calls.{number}.tool_call.function."
        told |= {f"{function}name": call["name"], f"{function}arguments": call["arguments"]}
    for number, tool in enumerate(answer.get("tools", ())):
        told[f"llm.tools.{number}.tool.json_schema"] = json.dumps(tool)
    counts = {"output_tokens": "completion", "reasoning_tokens": "completion_details.reasoning"}
    told |= {
        f"llm.token_count.{name}": answer[count]
        for count, name in counts.items()
        if count in answer
    }
    told |= {"openinference.span.kind": "LLM", "gen_ai.response.finish_reasons": []}
    send(key, told | {"llm.finish_reason": answer.get("finish_reason", "")})


def by_log_record(key: ApiKey, answer: Answer) -> None:
    body = {"index": 0, "message": message_of(answer)}
    body |= {"finish_reason": answer["finish_reason"]} if "finish_reason" in answer else {}
    told = {"failsoft.node": "trips", "gen_ai.system": "openai", **request_of(answer)}
    record = log_record("gen_ai.choice", told, body)
    receive_logs(key.project_id, read_logs(logs(record).SerializeToString()))
    reason = answer.get("finish_reason", "") if "tool_calls" in answer else ""
    send(key, {"gen_ai.response.finish_reasons": [reason]})


def send(key: ApiKey, attributes: dict[str, Any]) -> None:
    told = {"failsoft.node": "trips", **attributes}
    receive_spans(key.project_id, read_spans(traces(span(told)).SerializeToString()))


def message_of(answer: Answer) -> dict[str, Any]:
    calls = {"tool_calls": answer["tool_calls"]} if "tool_calls" in answer else {}
    return {"content": answer.get("text"), **calls}


def request_of(answer: Answer) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if "tools" in answer:
        told["gen_ai.tool.definitions"] = json.dumps(answer["tools"])
    if "reasoning_tokens" in answer:
        told["gen_ai.usage.output_tokens"] = answer["output_tokens"]
        told["gen_ai.usage.reasoning.output_tokens"] = answer["reasoning_tokens"]
    return told


DOORS: dict[str, Door] = {
    "post": by_post,
    "span": by_span,
    "OpenInference": by_openinference,
    "log record": by_log_record,
}


def event_of(door: str, answer: Answer, *, has_schema: bool) -> Event:
    """Return what an answer becomes that comes through a door."""
    project = Project.objects.create(slug=f"p{Project.objects.count()}", name="P")
    if has_schema:
        register_schema(project, "trips", ITINERARY, "1")
    DOORS[door](issue_key(project, "agent", [Scope.INGEST]).row, answer)
    return Event.objects.get(project=project)


def shown(event: Event) -> str:
    return event.parse_error_type or f"{event.kind}, {event.unchecked}"


@pytest.mark.slow
@pytest.mark.parametrize("has_schema", [False, True], ids=["free", "with a schema"])
@pytest.mark.parametrize("door", DOORS)
def test_what_cannot_be_used_is_a_failure_through_every_door(door: str, has_schema: bool) -> None:
    became = [shown(event_of(door, answer, has_schema=has_schema)) for _, answer in CASES]
    wrong = [
        (became, kind, answer)
        for became, (kind, answer) in zip(became, CASES, strict=True)
        if became != kind
    ]
    assert wrong == []


@pytest.mark.parametrize("door", DOORS)
def test_what_can_be_used_is_a_call_that_nothing_checked(door: str) -> None:
    became = [shown(event_of(door, answer, has_schema=False)) for answer in USABLE]
    assert became == ["succeeded, no_schema"] * len(USABLE)


@pytest.mark.parametrize("door", DOORS)
def test_a_call_of_a_tool_that_was_offered_is_checked_by_its_schema(door: str) -> None:
    right = called("find_route", '{"from": "Oslo"}', finish_reason="tool_calls")
    assert shown(event_of(door, right, has_schema=False)) == "succeeded, None"


@pytest.mark.parametrize("door", ["post", "span", "log record"])
def test_arguments_sent_as_an_object_may_have_been_cut_off(door: str) -> None:
    cut = called("find_route", {"from": "Os"}, finish_reason="length")
    assert shown(event_of(door, cut, has_schema=False)) == "truncated"


def test_a_failure_says_what_is_wrong() -> None:
    def message(answer: Answer) -> str:
        event = event_of("post", answer, has_schema=False)
        (error,) = EventPayload.objects.get(event_id=event.event_id).validation_errors
        return str(error["message"])

    assert message(called("book_seats", "{}")) == (
        "expected a tool that was offered, got book_seats; the nearest is book_seat"
    )
    assert "no name" in message(called("", "{}"))
    # Of thousands of tools only the first are compared: all would take seconds.
    many = [*({"name": f"t{number}"} for number in range(1_000)), {"name": "book_seat"}]
    unknown = called("book_seats", "{}") | {"tools": [{"functionDeclarations": many}]}
    assert "nearest" not in message(unknown)
    reasoned = {"text": "", "output_tokens": 64, "reasoning_tokens": 64}
    assert "all 64 output tokens were reasoning" in message(reasoned)
    assert "64 of 70 output tokens were" in message({**reasoned, "output_tokens": 70})
    assert "written as text" in message(written('[TOOL_CALLS]book_seat[ARGS]{"seat": 4}'))


def test_tools_without_a_name_leave_open_which_were_offered() -> None:
    answer = called("search_web", "{}") | {"tools": [*TOOLS, {"type": "web_search"}]}
    assert shown(event_of("post", answer, has_schema=False)) == "succeeded, None"


@pytest.mark.parametrize(
    "tool",
    [
        {"functionDeclarations": [{"name": "other"}, {"name": "find_route", "parameters": ROUTE}]},
        {"toolSpec": {"name": "find_route", "inputSchema": {"json": ROUTE}}},
    ],
)
def test_tools_in_the_wrapping_of_a_provider_are_read(tool: Answer) -> None:
    wrong = called("find_route", '{"to": "Oslo"}') | {"tools": [tool]}
    assert shown(event_of("post", wrong, has_schema=False)) == "schema_invalid"
    unknown = called("book_seat", "{}") | {"tools": [tool]}
    assert shown(event_of("post", unknown, has_schema=False)) == "schema_invalid"


def test_fields_that_a_broken_response_left_empty_refuse_no_answer() -> None:
    fields = {"finish_reason": "", "served_model": "", "system_fingerprint": ""}
    event = event_of("post", {"text": "", **fields}, has_schema=False)
    assert (event.parse_error_type, event.finish_reason) == ("empty_output", None)
