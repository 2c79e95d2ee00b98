"""Names of models, providers, sources and versions stay as they are, through every way in."""

import json
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.test import Client
from genai_prices.data import providers

from agents.goals.submission import submit_goal
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.redaction.redactor import redact_json, redact_name, register_secret
from diagnostics.store.models import Event, EventPayload, Outcome
from failsoft.redaction import Redactor
from failsoft.redaction.rules import TOKEN, load_rules
from tests.diagnostics.builders import make_event, wire_event
from tests.diagnostics.otlp_bodies import span, traces
from tests.failsoft.redaction.made_up import EXAMPLES, make
from tests.failsoft.redaction.made_up_names import made_up_names

NAMES = made_up_names(500, 22)
# Few enough for one request, and all that were once masked.
SOME = ["local-vllm-m0", "sk-model-1", *NAMES[::5]]
FIELDS = (
    "provider",
    "model",
    "source",
    "environment",
    "release",
    "prompt_version",
    "schema_version",
)
COLUMNS = (*FIELDS, "correlation_id")
# As fields of a name take them: no address, no blank.
TOKENS = [
    make(example, Random(example))[0]
    for kind in dict.fromkeys(rule.kind for rule in load_rules() if rule.rank == TOKEN)
    for example in EXAMPLES[kind]["positive"]
    if not set(' "=<>') & set(example) and "://" not in example
]
PLAN = {"steps": [{"step_id": "step_1", "tool": "echo", "args": {"text": "x"}}]}
Post = Callable[..., Any]


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def post(project: Project) -> Post:
    key = issue_key(project, "k", [Scope.INGEST]).text

    def send(url: str, body: Any, kind: str = "application/json") -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}"}
        answer = Client().post(url, raw, content_type=kind, headers=headers)
        assert answer.status_code < 300, answer.content

    return send


@pytest.mark.slow
def test_every_priced_model_and_500_made_up_names_are_no_secrets() -> None:
    listed = {model.id for provider in providers for model in provider.models}
    listed |= {provider.id for provider in providers}
    assert len(listed) > 500
    for name in (*listed, *NAMES, "local-vllm-m0", "sk-model-1"):
        assert redact_name(name) == name
        assert redact_json({"model": name}) == {"model": name}


def test_several_names_at_once_are_no_secrets() -> None:
    redactor = Redactor()
    for at in range(0, len(NAMES) - 10, 10):
        joined = ",".join(NAMES[at : at + 10])
        assert redactor.for_name(joined).redact(joined).text == joined


def test_a_token_of_full_length_is_masked_in_a_name() -> None:
    left = [token for token in TOKENS if "[REDACTED:" not in redact_name(token)]
    assert len(TOKENS) > 90
    assert left == []


def test_a_known_value_and_a_setting_are_masked_in_a_name() -> None:
    value = make("{alnum:20}", Random(5))[0]
    register_secret(value, "provider_key")
    assert redact_name(f"model-{value}") == "model-[REDACTED:provider_key]"
    password = make("{alnum:12}1", Random(6))[0]
    assert password not in redact_name(f"password={password}")
    assert password not in redact_name(f"amqp://app:{password}@mq/x")


def test_events_keep_names(project: Project, post: Post) -> None:
    post("/api/v1/events", [wire_event(**dict.fromkeys(COLUMNS, name)) for name in SOME])
    assert_kept(project, COLUMNS)


def test_events_mask_whole_tokens(project: Project) -> None:
    token = make("sk-ant-{alnum:60}", Random(1))[0]
    record(project.pk, [make_event(**dict.fromkeys(COLUMNS, token))])
    row = Event.objects.values(*COLUMNS).get(project=project)
    assert set(row.values()) == {"[REDACTED:anthropic_key]"}


def test_our_own_events_keep_names_of_tools(project: Project) -> None:
    events = [
        make_event(name="graph.plan.unknown_tool", tool=name, parse_error_type=None)
        for name in SOME
    ]
    record(project.pk, events)
    tools = EventPayload.objects.filter(project=project).values_list("tool", flat=True)
    assert set(tools) == set(SOME)


def test_outcomes_keep_names(project: Project, post: Post) -> None:
    minute = clock.now().replace(second=0, microsecond=0).isoformat()
    told = {"minute": minute, "node": "plan", "ok_first": 1}
    post("/api/v1/outcomes", [{**told, **dict.fromkeys(FIELDS, name)} for name in SOME])
    rows = Outcome.objects.filter(project=project).values_list("source", flat=True)
    assert set(rows) == set(SOME)


def test_deploys_keep_names(project: Project, post: Post) -> None:
    for name in SOME[:40]:
        told = {"kind": "release", "at": clock.now().isoformat(), "version": name}
        post("/api/v1/deploys", {**told, "source": name, "environment": name})
    rows = Deploy.objects.filter(project=project)
    assert set(rows.values_list("version", flat=True)) == set(SOME[:40])
    assert set(rows.values_list("source", flat=True)) == set(SOME[:40])


def test_spans_keep_names(project: Project, post: Post) -> None:
    for name in SOME[:40]:
        resource = {
            "service.name": name,
            "service.version": name,
            "deployment.environment.name": name,
        }
        call = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": name,
            "gen_ai.request.model": name,
            "failsoft.correlation_id": name,
        }
        body = traces(span(call, trace_id=uuid4().hex), resource=resource)
        post("/v1/traces", body.SerializeToString(), "application/x-protobuf")
    fields = ("provider", "model", "source", "environment", "release")
    for field in fields:
        rows = Event.objects.filter(project=project).values_list(field, flat=True)
        assert sorted(rows) == sorted(SOME[:40])


def test_goals_keep_names(project: Project, settings: LazySettings) -> None:
    for name in SOME[:20]:
        settings.FAILSOFT_ENVIRONMENT = name
        body: dict[str, object] = {"goal": "Do it.", "correlation_id": name, "plan": PLAN}
        goal = submit_goal(project.pk, body, source=name)
        assert (goal.correlation_id, goal.source, goal.environment) == (name, name, name)


def assert_kept(project: Project, fields: tuple[str, ...]) -> None:
    since = clock.now() - timedelta(days=400)
    rows = Event.objects.filter(project=project, occurred_at__gte=since)
    for field in fields:
        assert sorted(rows.values_list(field, flat=True)) == sorted(SOME), field
