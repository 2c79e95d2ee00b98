"""Calls in a run: what the server is sent of them, and what the host sees."""

import asyncio
import json
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link
from pydantic import BaseModel, Field, ValidationError

import failsoft
from failsoft.telemetry import runs
from failsoft.telemetry.connection import ServerAddress
from failsoft.telemetry.sending import OPEN_SPANS, MaskedSpans, OtelSending, Preparing
from tests.failsoft.telemetry.conftest import Server


class Trip(BaseModel):
    city: str
    days: int = Field(ge=1)


def call(provider: TracerProvider, name: str, **attributes: str) -> None:
    """Do what an instrumentation does around a call of a model."""
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny", **attributes}
    with provider.get_tracer("agent").start_as_current_span(name, attributes=told):
        pass


def test_calls_in_a_run_have_its_node_and_version(provider: TracerProvider, server: Server) -> None:
    with failsoft.run(node="Plan Trip", prompt_version="7"):
        call(provider, "first")
        call(provider, "second")
    call(provider, "outside")
    provider.force_flush()
    run, first, second = (
        server.span(name) for name in ("invoke_agent plan_trip", "first", "second")
    )
    assert first.trace == second.trace == run.trace
    assert first.parent == second.parent
    told = {"failsoft.node": "plan_trip", "failsoft.prompt_version": "7"}
    assert told.items() <= first.attributes.items()
    assert not [key for key in server.span("outside").attributes if key.startswith("failsoft.")]
    assert server.keys == {"Bearer key"}
    # The end of the run arrives after its calls.
    names = [span.name for span in server.spans]
    assert names.index("invoke_agent plan_trip") > names.index("second") > names.index("first")


def test_a_schema_that_cannot_be_read_costs_a_run_nothing_else(
    provider: TracerProvider, server: Server
) -> None:
    with failsoft.run(node="trip", schema="Trip"):
        call(provider, "first")
    provider.force_flush()
    assert server.span("first").attributes["failsoft.node"] == "trip"


def test_an_error_of_the_answer_is_told_of_the_latest_call(
    provider: TracerProvider, server: Server
) -> None:
    @failsoft.run(node="trip")
    def plan() -> None:
        call(provider, "first")
        call(provider, "second")
        try:
            Trip.model_validate({"city": "Oslo", "days": 0})
        except ValueError as error:
            raise RuntimeError("asked three times") from error

    with pytest.raises(RuntimeError):
        plan()
    provider.force_flush()
    assert "failsoft.parse_error_type" not in server.span("first").attributes
    told = server.span("second").attributes
    assert told["failsoft.parse_error_type"] == "schema_invalid"
    [error] = json.loads(told["failsoft.validation_errors"])
    assert (error["path"], error["code"]) == ("/days", "greater_than_equal")
    assert server.span("invoke_agent trip").status == 2


def test_any_other_error_says_nothing_of_the_answer(
    provider: TracerProvider, server: Server
) -> None:
    @failsoft.run(node="trip")
    def plan() -> None:
        call(provider, "first")
        raise KeyError("no such row")

    with pytest.raises(KeyError):
        plan()
    provider.force_flush()
    assert "failsoft.parse_error_type" not in server.span("first").attributes


def test_a_loop_of_ones_own_tells_each_invalid_answer(
    provider: TracerProvider, server: Server
) -> None:
    with failsoft.run(node="trip") as run:
        call(provider, "first")
        answer = failsoft.recover('{"city": "Oslo",\n "days": 0}', schema=Trip)
        run.invalid(answer)
        call(provider, "second")
        run.invalid("the city does not exist")
        call(provider, "third")
    provider.force_flush()
    [error] = json.loads(server.span("first").attributes["failsoft.validation_errors"])
    assert (error["path"], error["line"], error["column"]) == ("/days", 2, 10)
    [error] = json.loads(server.span("second").attributes["failsoft.validation_errors"])
    assert error == {"message": "the city does not exist"}
    assert "failsoft.validation_errors" not in server.span("third").attributes


def test_an_invalid_answer_of_a_client_that_nothing_reports_is_logged(
    provider: TracerProvider, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with failsoft.run(node="trip") as run:
        run.invalid("no days")
    (record,) = caplog.records
    unseen = "failsoft: no call was seen in this run: is its client instrumented?"
    assert record.getMessage() == unseen


def test_a_failed_call_stays_what_it_is(provider: TracerProvider, server: Server) -> None:
    def plan(name: str, error: Exception) -> None:
        with failsoft.run(node="trip"):
            call(provider, "first")
            try:
                json.loads("{")
            except ValueError:  # asked again inside, so that it is the context of what follows
                with provider.get_tracer("agent").start_as_current_span(
                    name, attributes={"gen_ai.request.model": "tiny"}
                ):
                    raise error from None

    with pytest.raises(TimeoutError):
        plan("late", TimeoutError("late"))
    with pytest.raises(json.JSONDecodeError):
        plan("unread", json.JSONDecodeError("no", "{", 1))
    provider.force_flush()
    assert "failsoft.parse_error_type" not in server.span("late").attributes
    # A client that could not read the answer says so in the span of the call, too.
    assert server.span("unread").attributes["failsoft.parse_error_type"] == "not_json"


def test_a_run_that_tasks_share_is_one_for_each_of_them(
    provider: TracerProvider, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    trip = failsoft.run(node="trip")

    async def plan(name: str, is_good: bool) -> None:
        async with trip:
            call(provider, name)
            await asyncio.sleep(0.01)
            if not is_good:
                trip.invalid("no city")
            await asyncio.sleep(0.01)

    async def plan_both() -> None:
        await asyncio.gather(plan("bad", False), plan("good", True))

    asyncio.run(plan_both())
    provider.force_flush()
    assert "failsoft.parse_error_type" in server.span("bad").attributes
    assert "failsoft.parse_error_type" not in server.span("good").attributes
    assert not caplog.records


def test_a_stream_that_is_read_after_its_run_is_sent(
    provider: TracerProvider, server: Server
) -> None:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny"}
    with failsoft.run(node="trip"):
        call(provider, "first")
        stream = provider.get_tracer("agent").start_span("stream", attributes=told)
    stream.end()
    provider.force_flush()
    assert server.span("stream").attributes["failsoft.node"] == "trip"
    assert server.span("first").attributes["failsoft.node"] == "trip"


def test_a_function_is_a_run_a_call(provider: TracerProvider, server: Server) -> None:
    @failsoft.run(prompt_version="2")
    def plan(city: str) -> str:
        call(provider, f"to {city}")
        return city

    @failsoft.run
    async def walk(city: str) -> str:
        await asyncio.sleep(0)
        call(provider, f"in {city}")
        return city

    async def both() -> tuple[str, str]:
        rome, bonn = await asyncio.gather(walk("Rome"), walk("Bonn"))
        return rome, bonn

    assert (plan("Oslo"), plan("Riga")) == ("Oslo", "Riga")
    assert asyncio.run(both()) == ("Rome", "Bonn")
    provider.force_flush()
    spans = {name: server.span(name) for name in ("to Oslo", "to Riga", "in Rome", "in Bonn")}
    assert len({span.trace for span in spans.values()}) == 4
    assert [span.attributes["failsoft.node"] for span in spans.values()] == [
        *("plan", "plan"),
        *("walk", "walk"),
    ]


def test_a_run_inside_a_run_is_a_node_of_it(provider: TracerProvider, server: Server) -> None:
    async def plan() -> None:
        async with failsoft.run(node="plan", prompt_version="2", correlation_id="order-1"):
            call(provider, "planned")
            async with failsoft.run(node="act"):
                call(provider, "acted")

    asyncio.run(plan())
    provider.force_flush()
    acted, planned = server.span("acted"), server.span("planned")
    assert acted.trace == planned.trace
    assert acted.attributes["failsoft.correlation_id"] == "order-1"
    assert (acted.attributes["failsoft.node"], planned.attributes["failsoft.node"]) == (
        "act",
        "plan",
    )


def test_two_runs_in_one_trace_of_the_host_are_two_and_the_hosts_spans_stay(
    provider: TracerProvider, server: Server
) -> None:
    own = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(own))
    with provider.get_tracer("web").start_as_current_span("GET /trips"):
        for name in ("first", "second"):
            with failsoft.run(node="trip"):
                call(provider, name, **{"input.value": "secret plans"})
    provider.force_flush()
    first, second = server.span("first"), server.span("second")
    assert first.trace == second.trace
    runs = [span.attributes["failsoft.correlation_id"] for span in (first, second)]
    assert runs[0] != runs[1]
    [kept] = [span for span in own.get_finished_spans() if span.name == "first"]
    assert dict(kept.attributes or {})["input.value"] == "secret plans"
    assert "failsoft.node" not in (kept.attributes or {})


def test_prompts_stay_and_secrets_are_masked(provider: TracerProvider, server: Server) -> None:
    secret = "sk-ant-" + "api03-" + "Ab9" * 30
    told = {
        "gen_ai.input.messages": "a prompt",
        "gen_ai.prompt.0.content": "a prompt",
        "llm.input_messages.0.message.content": "a prompt",
        "request_data": '{"messages": "a prompt"}',
        "langfuse.trace.input": "a prompt",
        "llm.prompt_template.variables": "a prompt",
        "gcp.vertex.agent.llm_request": "a prompt",
        "braintrust.input_json": "a prompt",
        "genkit:input": "a prompt",
        "reranker.query": "a prompt",
        "ai.values": ["a prompt"],
        "gen_ai.prompt.version": "7",
        "gen_ai.output.messages": json.dumps([{"text": f"use {secret}"}]),
        "gen_ai.response.id": "chatcmpl-CJcGPmJzZsYmzwUaJ3mFsWDCmWG2y",
    }
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span(f"use {secret}") as span:
        link = Link(span.get_span_context(), {"key": secret})
    with tracer.start_as_current_span("call", attributes=told, links=[link]) as span:
        span.add_event("gen_ai.user.message", {"content": "a prompt"})
        span.add_event("gen_ai.choice", {"message": f"use {secret}"})
    provider.force_flush()
    sent = server.span("call")
    assert sent.attributes == {
        "gen_ai.prompt.version": "7",
        "gen_ai.output.messages": '[{"text": "use [REDACTED:anthropic_key]"}]',
        "gen_ai.response.id": told["gen_ai.response.id"],
    }
    assert secret not in str(server.requests)
    assert "a prompt" not in str(server.requests)


def test_secrets_of_the_resource_are_masked() -> None:
    secret = "sk-ant-" + "api03-" + "Ab9" * 30
    resource = Resource({"service.name": "bot", "process.command_line": f"bot --key {secret}"})
    sent, provider = InMemorySpanExporter(), TracerProvider(resource=resource)
    masked = MaskedSpans(sent, Preparing(ServerAddress("http://127.0.0.1:1", "key"), None))
    provider.add_span_processor(SimpleSpanProcessor(masked))
    call(provider, "first")
    (span,) = sent.get_finished_spans()
    assert span.resource.attributes["service.name"] == "bot"
    assert secret not in str(dict(span.resource.attributes))


def test_what_tells_nothing_of_models_is_sent_bare(
    provider: TracerProvider, server: Server
) -> None:
    tracer = provider.get_tracer("web")
    statement = {"db.statement": "SELECT * FROM customers"}
    with tracer.start_as_current_span("SELECT", attributes=statement) as span:
        span.add_event("exception", {"exception.message": "no such customer"})
    asked = {"openinference.span.kind": "CHAIN", "output.value": "of a customer"}
    with tracer.start_as_current_span("chain", attributes=asked):
        pass
    provider.force_flush()
    assert (server.span("SELECT").attributes, server.span("SELECT").events) == ({}, "[]")
    assert server.span("chain").attributes == {"openinference.span.kind": "CHAIN"}
    assert "customer" not in str(server.requests)


def test_a_schema_is_registered_once_and_before_its_answers(
    provider: TracerProvider, server: Server
) -> None:
    for _ in range(2):
        with failsoft.run(node="trip", schema=Trip):
            call(provider, "call")
        provider.force_flush()
    assert server.paths == ["/api/v1/schemas/trip", "/v1/traces", "/v1/traces"]
    assert server.schemas["trip"] == Trip.model_json_schema()


def test_a_schema_without_a_node_names_it_and_a_list_has_a_schema_too(
    provider: TracerProvider, server: Server
) -> None:
    with failsoft.run(schema=Trip):
        call(provider, "call")
    with failsoft.run(node="trips", schema=list[Trip]):
        call(provider, "another")
    provider.force_flush()
    assert set(server.schemas) == {"trip", "trips"}
    assert server.schemas["trips"]["type"] == "array"
    assert server.span("call").attributes["failsoft.node"] == "trip"


def test_a_refused_schema_is_logged_and_the_spans_are_sent(
    provider: TracerProvider, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.refusal = {
        "detail": "/json_schema/$ref: no circular references",
        "errors": [{"path": "/json_schema/$ref", "message": "no circular references"}],
    }
    for _ in range(2):
        with failsoft.run(node="trip", schema=Trip):
            call(provider, "call")
        provider.force_flush()
    assert server.paths == ["/api/v1/schemas/trip", "/v1/traces", "/v1/traces"]
    assert caplog.messages == [
        "failsoft: the schema of trip is not registered: /json_schema/$ref: no circular references"
    ]


def test_misspelt_keywords_of_a_schema_are_logged_but_none_of_pydantics(
    provider: TracerProvider, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.registered = {"version": "1", "ignored": ["/requird", "/properties/at/format"]}
    for _ in range(2):
        with failsoft.run(node="trip", schema={"type": "object", "requird": ["city"]}):
            call(provider, "call")
        provider.force_flush()
    assert caplog.messages == [
        "failsoft: the schema of trip has keywords that check nothing: /requird"
    ]


def test_nothing_of_it_raises_into_the_host(
    provider: TracerProvider, caplog: pytest.LogCaptureFixture
) -> None:
    with failsoft.run(node="trip", schema=object()) as run:
        run.invalid(None)
    assert "reading the schema of a run failed" in caplog.text

    @failsoft.run(node="trip")
    def lines() -> Any:
        yield from ("a", "b")

    assert list(lines()) == ["a", "b"]
    assert "a generator is no run" in caplog.text


def test_a_stream_whose_parts_are_read_in_other_contexts_says_nothing_in_the_log(
    provider: TracerProvider, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    def parts() -> Iterator[str]:
        with failsoft.run(node="trip"):
            call(provider, "first part")
            yield "a"
            yield "b"

    # As web servers read a stream: each part in a thread, in a copy of the request's context.
    stream = parts()
    read = [copy_context().run(next, stream, "") for _ in range(3)]
    provider.force_flush()
    assert read == ["a", "b", ""]
    assert caplog.messages == []
    assert server.span("first part").attributes["failsoft.node"] == "trip"


def test_spans_that_never_end_are_given_up(provider: TracerProvider, server: Server) -> None:
    sending = runs._current.sending
    assert isinstance(sending, OtelSending)
    tracer = provider.get_tracer("agent")
    with failsoft.run(node="trip"):
        for _ in range(OPEN_SPANS + 10):
            tracer.start_span("leaked")
    assert len(sending._spans._open) == OPEN_SPANS


class Size(BaseModel):
    width: int


class Product(BaseModel):
    attributes: list[Size]


def test_a_model_may_have_a_field_called_attributes(
    provider: TracerProvider, server: Server
) -> None:
    with failsoft.run(node="product") as run:
        call(provider, "first")
        with pytest.raises(ValidationError) as refused:
            Product.model_validate({"attributes": [{"width": "wide"}]})
        run.invalid(refused.value)
    provider.force_flush()
    [error] = json.loads(server.span("first").attributes["failsoft.validation_errors"])
    assert (error["path"], error["code"]) == ("/attributes/0/width", "int_parsing")
    assert error["message"].startswith("expected a valid integer")
