"""`manage.py import_traces`: what other tools have kept becomes the baseline of a verdict."""

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.core.management import CommandError, call_command

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.backfill import PAUSE, pause_alerts
from diagnostics.alerting.evaluator import evaluate, evaluate_project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.rule_models import AlertState
from diagnostics.alerting.statuses import verdict_within
from diagnostics.ingest.exports import files
from diagnostics.ingest.models import AgentSpan, SpanCall, UnplacedCall, Usage
from diagnostics.ingest.receiving import receive_spans
from diagnostics.ingest.recording import record
from diagnostics.management.commands import import_traces
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.selection.selection import Selection
from diagnostics.store.aggregation import fold, waiting
from diagnostics.store.models import Event, EventIdentity
from diagnostics.store.run_models import AgentRun, Assessment
from diagnostics.store.windows import Grain, align_to
from failsoft.events import PostedEvent
from tests.console import post_runs
from tests.diagnostics import otlp_bodies as bodies
from tests.diagnostics.builders import succeeded, wire_event
from tests.diagnostics.ingest.test_span_runs import TOLD
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
SECOND_NS = 1000 * bodies.MILLISECOND_NS
MINUTE = timedelta(minutes=1)
TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "b7ad6b7169203330"
Write = Callable[..., Path]
NAMES = {
    "node": "next_step",
    "provider": "anthropic",
    "model": "claude-haiku-4",
    "environment": "prod",
    "source": "support-bot",
}


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="default", name="Default")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, *lines: object) -> Path:
        path = tmp_path / name
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return file


def run(*files: Path, **options: Any) -> str:
    out = StringIO()
    call_command("import_traces", *map(str, files), stdout=out, stderr=out, **options)
    return out.getvalue()


def refused(*files: Path, **options: Any) -> tuple[str, str]:
    """Run a command that fails; give what it said before, and as its last line."""
    out = StringIO()
    with pytest.raises(CommandError) as error:
        call_command("import_traces", *map(str, files), stdout=out, stderr=out, **options)
    return out.getvalue(), str(error.value)


def hours_ago(hours: float) -> datetime:
    return clock.now() - timedelta(hours=hours)


def ns(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000


def call(at: datetime, outcome: str = "g", **changes: Any) -> Any:
    """A span of a call; `x` is one whose answer was no JSON."""
    told = {"failsoft.node": "next_step"}
    told |= {"failsoft.parse_error_type": "not_json"} if outcome == "x" else TOLD["g"]
    return bodies.span(told, start_ns=ns(at), **{"trace_id": uuid4().hex, **changes})


def line(*spans: Any) -> str:
    return bodies.as_json(bodies.traces(*spans)).decode()


def attempts(at: datetime, outcomes: str) -> list[Any]:
    """The calls of one run, a few seconds apart, below the span of an agent."""
    trace_id = uuid4().hex
    agent = {"gen_ai.operation.name": "invoke_agent"}
    root = bodies.span(agent, trace_id=trace_id, span_id="a" * 16, start_ns=ns(at))
    root.end_time_unix_nano = ns(at + timedelta(seconds=60))
    calls = [
        call(
            at + timedelta(seconds=3 * place),
            word,
            trace_id=trace_id,
            span_id=f"{place + 1:016x}",
            parent_span_id=bytes.fromhex("a" * 16),
        )
        for place, word in enumerate(outcomes)
    ]
    return [root, *calls]


def kinds() -> list[str]:
    return list(Event.objects.order_by("occurred_at").values_list("kind", flat=True))


def counted(project: Project, days: int = 31) -> tuple[int, int, int]:
    """Give runs, degraded ones and calls as the rollups of hours have them."""
    now = clock.now()
    window = align_to(Grain.HOUR, now - timedelta(days=days), now + timedelta(hours=1))
    asked = Question(window, ("node",), ("runs", "degraded", "attempts"))
    rows = sum_rollups(project.pk, asked)
    return (sum(r[1] for r in rows), sum(r[2] for r in rows), sum(r[3] for r in rows))


def test_the_collectors_file_becomes_events_runs_and_counts(project: Project, write: Write) -> None:
    old = hours_ago(20 * 24)
    path = write(
        "spans.json",
        line(*attempts(old, "g")),
        # The agent's own span of the last run is missing.
        line(*attempts(old, "xg"), *attempts(old, "xxx")[1:]),
        {"resourceMetrics": []},
    )
    said = run(path)
    assert "Imported 6 events of 3 runs; 0 known before; 2 other spans" in said
    assert "Not understood: none." in said
    outcomes = sorted(AgentRun.objects.values_list("outcome", flat=True))
    assert outcomes == ["degraded", "ok_first", "recovered"]
    assert counted(project) == (3, 1, 6)
    assert not waiting()
    run_of = AgentRun.objects.get(outcome="recovered")
    assert (run_of.attempts, run_of.source, run_of.environment) == (2, "support-bot", "prod")


def test_an_import_twice_adds_nothing_even_after_weeks(project: Project, write: Write) -> None:
    path = write(
        "spans.json", line(*attempts(hours_ago(50), "xg")), line(*attempts(hours_ago(9), "xx"))
    )
    run(path)
    before = (kinds(), counted(project))
    assert "Imported 0 events of 2 runs; 4 known before" in run(path)
    assert (kinds(), counted(project)) == before
    # What is forgotten after days is not what it rests on.
    for table in (SpanCall, AgentSpan, UnplacedCall, EventIdentity):
        table.objects.all().delete()
    assert "Imported 0 events of 2 runs; 4 known before" in run(path)
    assert (kinds(), counted(project)) == before


def test_one_document_and_packed_files_are_read_as_well(
    project: Project, write: Write, tmp_path: Path
) -> None:
    document = json.loads(line(call(hours_ago(5)), call(hours_ago(4))))
    write("one.json", json.dumps(document, indent=2))
    packed = tmp_path / "two.jsonl.gz"
    packed.write_bytes(gzip.compress(line(call(hours_ago(3))).encode()))
    assert "Imported 3 events of 3 runs" in run(tmp_path / "one.json", packed)


def test_what_log_records_tell_of_an_answer_corrects_its_span(
    project: Project, write: Write
) -> None:
    silent, broken = hours_ago(5), {"message": {"role": "assistant", "content": "no JSON"}}
    span = bodies.span({"gen_ai.output.type": "json"}, start_ns=ns(silent))
    record = bodies.log_record("gen_ai.choice", {"gen_ai.output.type": "json"}, broken)
    record.time_unix_nano = ns(silent)
    evaluation = bodies.log_record(
        "gen_ai.evaluation.result",
        {"gen_ai.evaluation.name": "judge", "gen_ai.evaluation.score.label": "fail"},
    )
    evaluation.time_unix_nano = ns(silent)
    logs = [bodies.as_json(bodies.logs(one)).decode() for one in (evaluation, record)]
    path = write("all.json", *logs, line(span))
    run(path)
    assert kinds() == ["parse_invalid", "degraded"]
    before = counted(project)
    run(path)
    assert kinds() == ["parse_invalid", "degraded"]
    assert counted(project) == before


def test_evaluations_of_the_past_are_late_outcomes(project: Project, write: Write) -> None:
    at = hours_ago(5)
    told = {"gen_ai.evaluation.name": "judge", "gen_ai.evaluation.score.label": "fail"}
    span = call(at, trace_id=TRACE, events=[("gen_ai.evaluation.result", told)])
    run(write("spans.json", line(span)))
    said = Assessment.objects.get()
    assert (said.correlation_id, said.verdict) == (TRACE, "bad")


def test_what_is_older_than_asked_is_left_out_and_counted(project: Project, write: Write) -> None:
    path = write("spans.json", line(call(hours_ago(24 * 8)), call(hours_ago(24 * 6))))
    assert "Imported 1 event of 1 run" in run(path, days=7)
    assert "1 older than 7 days" in run(path, days=7)


def observation(at: datetime, **changes: Any) -> dict[str, Any]:
    """A generation as Langfuse's API has it."""
    return {
        "id": SPAN,
        "traceId": TRACE,
        "parentObservationId": PARENT,
        "type": "GENERATION",
        "name": "plan",
        "startTime": at.isoformat().replace("+00:00", "Z"),
        "endTime": (at + timedelta(seconds=2)).isoformat().replace("+00:00", "Z"),
        "model": "gpt-4o",
        "modelParameters": {"temperature": 0.2, "max_tokens": 512},
        "output": {"role": "assistant", "content": '{"steps": []}'},
        "usageDetails": {"input": 911, "output": 120, "total": 1031},
        "promptVersion": 4,
        "environment": "prod",
        "level": "DEFAULT",
        "metadata": {"langgraph_node": "Planner"},
        **changes,
    }


def exported(one: dict[str, Any]) -> dict[str, Any]:
    """The same as a bucket gets it: other names, times without offset, JSON as texts."""
    return {
        "id": one["id"],
        "trace_id": one["traceId"],
        "parent_observation_id": one["parentObservationId"],
        "type": one["type"],
        "name": one["name"],
        "start_time": _plain(one["startTime"]),
        "end_time": _plain(one["endTime"]),
        "provided_model_name": one["model"],
        "model_parameters": json.dumps(one["modelParameters"]),
        "output": json.dumps(one["output"]),
        "usage_details": one["usageDetails"],
        "prompt_version": one["promptVersion"],
        "environment": one["environment"],
        "level": one["level"],
        "metadata": {key: json.dumps(value) for key, value in one["metadata"].items()},
    }


def _plain(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z")


def as_csv(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            told = {key: _cell(value) for key, value in row.items()}
            writer.writerow(told)
    return path


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict | list) else value


def langfuse_files(tmp_path: Path, one: dict[str, Any]) -> Iterable[Path]:
    texts = {
        "api.json": json.dumps({"data": [one], "meta": {"page": 1}}, indent=1),
        "list.json": json.dumps([one]),
        "trace.json": json.dumps({"id": one["traceId"], "observations": [one]}),
        "bucket.jsonl": json.dumps(exported(one)) + "\n" + json.dumps(exported(one)),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        yield path
    yield as_csv(tmp_path / "console.csv", [one])
    yield as_csv(tmp_path / "bucket.csv", [exported(one)])


def test_every_export_of_langfuse_tells_the_same_event(project: Project, tmp_path: Path) -> None:
    one = observation(hours_ago(30).replace(microsecond=250_000))
    for path in langfuse_files(tmp_path, one):
        run(path)
        event = Event.objects.get()
        assert (event.kind, event.model, event.node) == ("succeeded", "gpt-4o", "planner"), path
        assert (event.correlation_id, event.environment) == (TRACE, "prod")
        assert (event.input_tokens, event.output_tokens) == (911, 120)
        assert (event.prompt_version, event.latency_ms) == ("4", 2000)
        assert event.occurred_at == datetime.fromisoformat(one["endTime"])
        assert AgentRun.objects.get().outcome == "unchecked", path


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"level": "ERROR", "statusMessage": "Error code: 429 - slow down"}, ["provider_error"]),
        ({"type": "SPAN"}, []),
        ({"metadata": {"finish_reason": "content_filter"}, "output": None}, ["parse_invalid"]),
    ],
)
def test_a_generation_of_langfuse_may_fail_or_be_none(
    project: Project, write: Write, changes: dict[str, Any], expected: list[str]
) -> None:
    run(write("api.json", [observation(hours_ago(3), **changes)]))
    assert [kind for kind in kinds() if kind != "degraded"] == expected


def test_what_has_no_end_has_no_latency(project: Project, write: Write) -> None:
    one = observation(hours_ago(3), endTime=None)
    run(write("endless.json", [one]))
    event = Event.objects.get()
    assert (event.kind, event.latency_ms) == ("succeeded", None)
    assert event.occurred_at == datetime.fromisoformat(one["startTime"])


def test_one_bad_observation_of_a_trace_costs_no_other(project: Project, write: Write) -> None:
    bad = observation(hours_ago(3), id="0" * 15 + "1", startTime="yesterday")
    path = write("trace.json", {"id": TRACE, "observations": [bad, observation(hours_ago(3))]})
    said, _ = refused(path)
    assert "no time: 'yesterday'" in said
    assert Event.objects.get().model == "gpt-4o"


def test_a_time_beyond_all_numbers_is_refused_with_its_line(project: Project, write: Write) -> None:
    bad = json.dumps(observation(hours_ago(3), startTime=float("inf"))).replace("Infinity", "1e999")
    path = write("api.jsonl", bad, observation(hours_ago(3)))
    said, _ = refused(path)
    assert "api.jsonl:1: no time: " in said
    assert Event.objects.count() == 1


def test_a_row_of_csv_with_more_cells_than_names_is_read(project: Project, tmp_path: Path) -> None:
    path = as_csv(tmp_path / "console.csv", [observation(hours_ago(3))])
    header, row = path.read_text(encoding="utf-8").splitlines()
    path.write_text(f"{header}\n{row},one,more\n", encoding="utf-8")
    run(path)
    assert Event.objects.get().model == "gpt-4o"


@pytest.mark.parametrize("first", ["", '"id": "cut off"}'], ids=["blank", "broken"])
def test_lines_stay_lines_behind_one_that_is_blank_or_broken(
    project: Project, write: Write, first: str
) -> None:
    lines = [observation(hours_ago(3), id=f"{number:016x}") for number in (1, 2)]
    path = write("api.jsonl", *([first, *lines] if first else [lines[0], first, lines[1]]))
    if first:
        said, _ = refused(path)
        assert "api.jsonl:1: not JSON" in said
    else:
        run(path)
    assert Event.objects.count() == 2


def test_what_the_span_told_before_langfuse_read_it_is_read_again(
    project: Project, write: Write
) -> None:
    metadata = {
        "attributes": {"gen_ai.provider.name": "openai", "failsoft.node": "router"},
        "resourceAttributes": {"service.name": "support-bot"},
    }
    run(write("api.json", [observation(hours_ago(3), metadata=metadata)]))
    event = Event.objects.get()
    assert (event.provider, event.node, event.source) == ("openai", "router", "support-bot")


def test_ids_that_are_none_of_opentelemetry_stay_findable(project: Project, write: Write) -> None:
    told = observation(hours_ago(3), id="obs-1", traceId="ticket-4711", parentObservationId=None)
    path = write("api.json", [told])
    run(path)
    assert AgentRun.objects.get().correlation_id == "ticket-4711"
    assert "Imported 0 events" in run(path)


def phoenix_span(at: datetime, **changes: Any) -> dict[str, Any]:
    """A span as a data frame of Phoenix is written: times in milliseconds, dotted columns."""
    return {
        "name": "ChatCompletion",
        "span_kind": "LLM",
        "parent_id": PARENT,
        "start_time": int(at.timestamp() * 1000),
        "end_time": int(at.timestamp() * 1000) + 2000,
        "status_code": "OK",
        "status_message": "",
        "events": [],
        "context.span_id": SPAN,
        "context.trace_id": TRACE,
        "attributes.llm.model_name": "gpt-4o",
        "attributes.llm.provider": "openai",
        "attributes.llm.token_count.prompt": 911.0,
        "attributes.llm.token_count.completion": 120.0,
        "attributes.llm.output_messages": [
            {"message.role": "assistant", "message.content": '{"steps": []}'}
        ],
        "attributes.metadata": {"langgraph_node": "planner"},
        "attributes.llm.invocation_parameters": '{"response_format": {"type": "json_object"}}',
        "attributes.retrieval.documents": None,
        **changes,
    }


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """The same as Phoenix's API has it."""
    messages = flat["attributes.llm.output_messages"][0]
    return {
        "id": "U3Bhbjox",
        "name": flat["name"],
        "context": {"trace_id": flat["context.trace_id"], "span_id": flat["context.span_id"]},
        "span_kind": flat["span_kind"],
        "parent_id": flat["parent_id"],
        "start_time": datetime.fromtimestamp(flat["start_time"] / 1000, UTC).isoformat(),
        "end_time": datetime.fromtimestamp(flat["end_time"] / 1000, UTC).isoformat(),
        "status_code": flat["status_code"],
        "attributes": {
            "llm": {
                "model_name": "gpt-4o",
                "provider": "openai",
                "token_count": {"prompt": 911, "completion": 120},
                "output_messages": [
                    {"message": {"role": "assistant", "content": messages["message.content"]}}
                ],
                "invocation_parameters": flat["attributes.llm.invocation_parameters"],
            },
            "metadata": {"langgraph_node": "planner"},
        },
        "events": [],
    }


@pytest.mark.parametrize("answer", ['{"steps": []}', "no JSON"])
def test_every_export_of_phoenix_tells_the_same_event(
    project: Project, write: Write, answer: str
) -> None:
    at = hours_ago(30).replace(microsecond=0)
    message = [{"message.role": "assistant", "message.content": answer}]
    one = phoenix_span(at, **{"attributes.llm.output_messages": message})
    other = {**one, "context.span_id": PARENT, "parent_id": None, "span_kind": "CHAIN"}
    run(write("frame.jsonl", one, other))
    expected = ["succeeded"] if answer.startswith("{") else ["parse_invalid", "degraded"]
    assert kinds() == expected
    event = Event.objects.order_by("occurred_at")[0]
    assert (event.provider, event.model, event.node) == ("openai", "gpt-4o", "planner")
    assert (event.input_tokens, event.output_tokens, event.latency_ms) == (911, 120, 2000)
    assert event.occurred_at == at + timedelta(seconds=2)
    assert event.correlation_id == TRACE
    run(write("api.json", {"data": [nested(one)], "next_cursor": None}))
    assert kinds() == expected


def test_an_exception_of_phoenix_names_the_error(project: Project, write: Write) -> None:
    event = {
        "name": "exception",
        "timestamp": hours_ago(3).isoformat(),
        "attributes": {"exception.type": "openai.RateLimitError"},
    }
    told = {"status_code": "ERROR", "events": [event], "attributes.llm.output_messages": None}
    run(write("frame.jsonl", phoenix_span(hours_ago(3), **told)))
    failed = Event.objects.get(kind="provider_error")
    assert failed.call_error_type == "rate_limited"


def story(write: Write) -> Path:
    """30 days that went well, and four bad hours that ended half an hour ago."""
    good = [
        line(*(call(hours_ago(hour - 0.2 * n)) for n in range(3)))
        for hour in range(30 * 24 - 2, 4, -1)
    ]
    bad = [
        line(call(hours_ago(minute / 60), "x" if minute % 6 else "g"))
        for minute in range(30, 4 * 60, 2)
    ]
    return write("spans.json", *good, *bad)


@pytest.mark.slow
def test_a_past_gives_the_first_verdict_a_baseline(project: Project, write: Write) -> None:
    run(story(write))
    now = clock.now()
    verdict = verdict_within(project.pk, Selection(), now)
    assert verdict.state == "degrading"
    assert verdict.since_low is not None
    assert verdict.since_high is not None
    # It fires at the first failure in 30 days, which tells little of since when.
    assert verdict.since_low < hours_ago(4) < verdict.since_high + timedelta(minutes=10)


def live(project: Project, minutes: int, bad: int) -> None:
    """Let an agent call for some minutes, badly and once well in each, and look every minute."""
    begin = clock.now()
    for minute in range(1, minutes + 1):
        at = begin + minute * MINUTE
        shift_clock(at)
        told = {"occurred_at": at.isoformat(), **NAMES}
        events = [wire_event(**told, correlation_id=uuid4().hex) for _ in range(bad)]
        events.append(succeeded(**told, correlation_id=uuid4().hex))
        record(project.pk, [PostedEvent.model_validate(event) for event in events])
        evaluate(at)


@pytest.mark.slow
@pytest.mark.parametrize("was_watched", [False, True], ids=["new", "watched before"])
def test_a_past_raises_no_alarm_and_sends_no_mail(
    project: Project, write: Write, was_watched: bool
) -> None:
    if was_watched:
        evaluate()
    run(story(write))
    states = set(AlertState.objects.values_list("state", flat=True))
    assert "resolved" in states
    assert states <= {"resolved", "ok", "no_data"}
    # The agent goes on as badly as it was: nothing of this is new.
    live(project, minutes=20, bad=2)
    assert not Incident.objects.exists()
    assert not Notification.objects.exists()
    assert not mail.outbox


@pytest.mark.slow
def test_a_trouble_that_begins_after_an_import_is_raised(project: Project, write: Write) -> None:
    good = [
        line(*(call(hours_ago(hour - 0.2 * n)) for n in range(3))) for hour in range(14 * 24, 1, -1)
    ]
    run(write("spans.json", *good))
    live(project, minutes=20, bad=2)
    assert Incident.objects.exists()


def test_alerts_wait_while_an_import_lasts_and_go_on_after_it(
    project: Project, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[int]()

    def store(*arguments: Any) -> Any:
        looked.append(evaluate_project(project.pk, clock.now()))
        return receive_spans(*arguments)

    monkeypatch.setattr(import_traces, "receive_spans", store)
    evaluate(clock.now() - 2 * MINUTE)
    run(write("spans.json", line(call(hours_ago(3)))))
    assert looked == [0]
    assert evaluate_project(project.pk, clock.now() + MINUTE) == 1


def test_an_import_that_was_killed_keeps_alerts_waiting_for_minutes_only(project: Project) -> None:
    evaluate(clock.now() - 2 * MINUTE)
    pause_alerts(project.pk)
    assert evaluate_project(project.pk, clock.now() + MINUTE) == 0
    assert evaluate_project(project.pk, clock.now() + PAUSE + MINUTE) > 0


def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_imported(
    project: Project, write: Write
) -> None:
    good = line(call(hours_ago(3)))
    path = write("spans.json", good, '{"resourceSpans": [{"scopeSpans": 1}]}', "{oops", "[1]", good)
    said, why = refused(path)
    assert f"{path}:2: /resourceSpans/0/scopeSpans: expected a list" in said
    assert f"{path}:3: not JSON: " in said
    assert "line 1" not in said
    assert f"{path}:4: expected an object" in said
    assert "Imported 1 event of 1 run" in said
    assert why == "3 items could not be read"


def test_an_item_that_is_refused_is_named_and_counted(project: Project, write: Write) -> None:
    timeless = call(hours_ago(3))
    timeless.start_time_unix_nano = timeless.end_time_unix_nano = 0
    path = write("spans.json", line(call(hours_ago(3))), line(timeless))
    said, why = refused(path)
    assert f"{path}:2: its time is missing or out of range" in said
    assert "Not understood: 1: its time is missing or out of range (1)." in said
    assert why == "1 item could not be read"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("odd.json", '{"a": 1}', "odd.json:1: unknown format; supported: otlp, langfuse, phoenix"),
        ("odd.json", "hello", "odd.json: not JSON: "),
        ("odd.jsonl.gz", "hello", "odd.jsonl.gz: Not a gzipped file"),
    ],
)
def test_a_file_of_no_known_format_is_refused_in_one_line(
    project: Project, write: Write, name: str, text: str, why: str
) -> None:
    _, said = refused(write(name, text))
    assert why in said
    assert "\n" not in said


def test_a_pipe_a_device_and_a_folder_are_refused_in_one_line_at_once(
    project: Project, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "spans.jsonl")
    os.mkfifo(tmp_path / "spans.jsonl.gz")
    pipe = "this is a pipe; write the traces to a file first"
    for path, why in {
        tmp_path / "spans.jsonl": pipe,
        tmp_path / "spans.jsonl.gz": pipe,
        Path("/dev/zero"): "this is a device; write the traces to a file first",
        tmp_path: "Is a directory",
    }.items():
        _, said = refused(path)
        assert said == f"{path}: {why}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spans.jsonl", "spans.jsonl.gz", "spans.csv", "spans.json"])
def test_an_endless_line_or_document_is_not_held_in_memory(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(files, "MOST_CHARACTERS", 1 << 20)
    endless = b"[\n" * (1 << 20) if name.endswith(".json") else b"x" * (2 << 20)
    path = tmp_path / name
    path.write_bytes(gzip.compress(endless) if name.endswith(".gz") else endless)
    _, said = refused(path)
    kind = "document" if name.endswith(".json") else "line"
    assert (
        said
        == f"{path}: a {kind} of more than 1 Mi characters; write one item per line (jq -c '.[]')"
    )


def test_a_csv_field_that_never_ends_is_refused_in_one_line(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_CHARACTERS", 1 << 20)
    (tmp_path / "spans.csv").write_bytes(b'id,name\n1,"' + b"x\n" * (1 << 20))
    _, said = refused(tmp_path / "spans.csv")
    assert said == f"{tmp_path / 'spans.csv'}: field larger than field limit (1048576)"


def test_a_file_that_is_not_there_is_named(project: Project, tmp_path: Path) -> None:
    _, said = refused(tmp_path / "none.json")
    assert said == f"{tmp_path / 'none.json'}: No such file or directory"


def test_spans_that_are_not_understood_are_counted_by_their_reason(
    project: Project, write: Write
) -> None:
    strange = call(hours_ago(3))
    del strange.attributes[:]
    strange.attributes.extend(bodies.key_values({"gen_ai.request.model": "m"}))
    said = run(write("spans.json", line(strange, call(hours_ago(2)))))
    assert "Not understood: 1: names a model and is not a known call (1)." in said


def test_an_import_uses_no_quota_of_the_project(project: Project, write: Write) -> None:
    run(write("spans.json", line(call(hours_ago(3)))))
    assert not Usage.objects.exists()


def test_events_that_come_live_meanwhile_are_told_apart(project: Project, write: Write) -> None:
    post_runs(project, 2, 0, hours_ago(0.1))
    run(write("spans.json", line(call(hours_ago(3)))))
    fold()
    assert counted(project) == (3, 0, 3)
