"""What people type is masked before it is stored, mailed or logged, whatever the way in."""

import io
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.core import mail
from django.db import models, transaction
from django.test import Client

from agents.breakers.models import Breaker
from agents.goals.models import PlanningStop
from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.incident_models import Incident
from diagnostics.failures.models import FailureGroup
from diagnostics.redaction.fields import RedactedCharField, RedactedTextField
from diagnostics.store.models import StoredEvent
from tests.agents.conftest import tables_holding
from tests.console import Role, make_member, make_model
from tests.failsoft.redaction.made_up import make
from tests.security.foreign_rows import first_of, make_row
from tests.security.test_one_door import log  # noqa: F401 - a fixture
from tests.signing import PASSWORD, signed_in

TEXT = (models.CharField, models.TextField, models.JSONField, ArrayField)
REDACTED = (RedactedCharField, RedactedTextField)
# Columns of text that no person types freely, by the reason.
DIMENSION = "an identifier: cleaned where it comes in, and matched by others exactly"
PROGRAM = "made by this product or sent by a program; redacted by the code that writes it"
REFUSED = "masking would change what it does: a text with a secret in it is refused"
REFERENCE = "an address, a zone or a reference to a secret: it is used as it is"
PERSON = "the name of an account"
CHAIN = "redacted by auditing.note, before its hash is made"
SEALED = "the encrypted working store"
NOT_TYPED: dict[str, dict[str, str]] = {
    DIMENSION: {
        "agents.Attempt": "node provider model error_type finish_reason served_model upstream"
        " system_fingerprint",
        "agents.Breaker": "provider model operation",
        "agents.FixSuccess": "correlation_id",
        "agents.Goal": "correlation_id environment source tools toolset",
        "agents.PurgeOrder": "correlation_id",
        "diagnostics.AgentRun": "correlation_id nodes called_models provider model environment"
        " source release prompt_version schema kinds",
        "diagnostics.AgentSchema": "node version json_schema",
        "diagnostics.AgentSpan": "trace_id span_id node",
        "diagnostics.AlertRule": "group_by standard",
        "diagnostics.Answerer": "environment provider model value",
        "diagnostics.Assessment": "correlation_id source subject trace_id",
        "diagnostics.Deploy": "source environment provider model version previous",
        "diagnostics.Event": "node kind correlation_id provider model environment source"
        " release schema schema_version prompt_version parse_error_type reason status"
        " finish_reason output_mode time_mark unchecked call_error_type served upstream"
        " system_fingerprint region credential",
        "diagnostics.FailureGroup": "node schema kind error_type pointer detail fixed_in"
        " releases_before",
        "diagnostics.KeyMinute": "source",
        "diagnostics.Outcome": "source environment node provider model release"
        " prompt_version schema schema_version",
        "diagnostics.Price": "provider model currency edition",
        "diagnostics.Project": "slug",
        "diagnostics.Reject": "source event_id",
        "diagnostics.Series": "environment node provider model",
        "diagnostics.SeriesName": "key name",
        "diagnostics.SpanCall": "trace_id span_id parent_id",
        "diagnostics.SpanVerdict": "trace_id span_id content",
        "diagnostics.UnplacedCall": "correlation_id trace_id parent_id",
        "diagnostics.Version": "prompt_version schema schema_version source release served"
        " region credential",
        "plans.CompletionCheck": "owner correlation_id check_id checker",
        "plans.ProjectToolPolicy": "tool",
        "plans.Run": "correlation_id release contract_version",
        "plans.RunStep": "step_id tool dependencies",
        "plans.ToolSlot": "tool",
    },
    PROGRAM: {
        "agents.ActionBatch": "toolset applied parse_failures execution_failures summary kept",
        "agents.Attempt": "output_mode dropped_constraints feedback told_patterns"
        " withheld_patterns errors preview repairs coerced",
        "agents.Breaker": "cause window",
        "agents.BreakerTransition": "cause",
        "agents.Entry": "id content summary source_text due_text",
        "agents.FixPattern": "schema error_class code pointer change before after",
        "agents.Goal": "text_preview runner plan_source completion_check constraints retry budget"
        " last_validation_error execution_eval next_user_question user_text help"
        " idempotency_digest",
        "agents.LanguageModel": "supported_output_modes",
        "agents.ModelCheck": "fault said",
        "diagnostics.AlertRule": "parameters routing escalation",
        "diagnostics.AlertState": "slice detector_state memory",
        "diagnostics.ApiKey": "key_id scopes",
        "diagnostics.Assessment": "reason",
        "diagnostics.Channel": "last_error",
        "diagnostics.EventPayload": "raw_output_preview validation_errors repairs coerced"
        " attributes original_error_type tool redacted_kinds",
        "diagnostics.Heartbeat": "name",
        "diagnostics.Incident": "title cause cause_value verdict verdict_now filter",
        "diagnostics.IncidentSlice": "slice",
        "diagnostics.Notification": "severity why facts answer receipts last_error",
        "diagnostics.OutboxMessage": "task queue kwargs last_error",
        "diagnostics.ProjectStatus": "verdict series",
        "diagnostics.ProjectTurn": "passed_over",
        "diagnostics.Reject": "endpoint code path message errors head",
        "diagnostics.Report": "title query zone digest subject document",
        "diagnostics.ReportDelivery": "skipped message_id last_error",
        "diagnostics.Rescrub": "cursor",
        "diagnostics.SavedView": "page query",
        "diagnostics.SeriesDetector": "detector_state memory",
        "diagnostics.VerdictMark": "cause cause_value verdict",
        "plans.CompletionCheck": "reason reasons fingerprints preview",
        "plans.McpServer": "name transport server_name server_version protocol_version"
        " digest last_error",
        "plans.McpTool": "name remote_name description input_schema digest",
        "plans.Run": "payload tool_digests meta contract_violations on_end_task"
        " on_end_kwargs refused_reason",
        "plans.RunStep": "title reason error output",
    },
    REFUSED: {
        "agents.LanguageModel": "name prompt_version",
        "agents.Provider": "name base_url",
        "diagnostics.AlertRule": "filter",
        "diagnostics.Incident": "tracker_url",
        "diagnostics.RedactionRule": "kind pattern",
        "diagnostics.Silence": "filter",
        "diagnostics.Subscription": "query",
    },
    REFERENCE: {
        "agents.Provider": "credential",
        "diagnostics.Channel": "shown credential zone",
        "diagnostics.Invitation": "email",
        "diagnostics.Profile": "zone",
        "diagnostics.Subscription": "address zone token",
    },
    PERSON: {
        "agents.BreakerTransition": "actor",
        "agents.FixPattern": "decided_by",
        "agents.FixPolicy": "changed_by",
        "plans.Run": "requested_by",
        "plans.RunStep": "resolved_by",
    },
    CHAIN: {"diagnostics.AuditEntry": "actor action target details address"},
    SEALED: {"plans.WorkingItem": "owner name"},
}


def our_models() -> Iterator[type[models.Model]]:
    for name in ("agents", "diagnostics", "plans"):
        models_of = apps.get_app_config(name).get_models()
        # The table of Event once more.
        yield from (model for model in models_of if model is not StoredEvent)


def redacted_fields() -> list[tuple[type[models.Model], str]]:
    return [
        (model, field.name)
        for model in our_models()
        for field in model._meta.concrete_fields
        if isinstance(field, REDACTED)
    ]


def listed_columns() -> set[tuple[str, str]]:
    return {
        (label, name)
        for tables in NOT_TYPED.values()
        for label, names in tables.items()
        for name in names.split()
    }


def test_every_column_of_text_is_redacted_or_says_who_writes_it() -> None:
    columns = {
        (model._meta.label, field.name)
        for model in our_models()
        for field in model._meta.concrete_fields
        if isinstance(field, TEXT) and not field.choices
    }
    masked = {(model._meta.label, name) for model, name in redacted_fields()}
    assert columns - masked - listed_columns() == set()
    assert listed_columns() - columns == set()
    assert listed_columns() & masked == set()


@pytest.fixture
def canary() -> str:
    return make("sk-proj-{alnum:48}", Random("typed"))[0]


@pytest.fixture
def project(db: None) -> Iterator[Project]:
    authentication.forget_all()
    yield Project.objects.create(slug="p", name="P")
    authentication.forget_all()


def core_of(canary: str) -> str:
    return canary[20:40]


@pytest.mark.parametrize(
    ("model", "name"), redacted_fields(), ids=lambda value: getattr(value, "__name__", value)
)
def test_a_column_is_masked_however_its_row_is_written(
    project: Project, canary: str, model: type[models.Model], name: str
) -> None:
    row = project if model is Project else make_row(model, project)
    rows = model._default_manager.filter(pk=row.pk)
    setattr(row, name, f"for {canary}")
    row.save()
    assert canary not in getattr(row, name)
    assert "[REDACTED:" in rows.values_list(name, flat=True).get()
    rows.update(**{name: f"of {canary}"})
    assert canary not in rows.values_list(name, flat=True).get()
    model._default_manager.bulk_update([row], [name])
    assert tables_holding(core_of(canary)) == []


def test_a_long_name_is_masked_before_it_is_cut(project: Project, canary: str) -> None:
    issued = issue_key(project, "x" * 180 + f" {canary}", [Scope.READ])
    issued.row.refresh_from_db()
    assert len(issued.row.name) <= 200
    assert canary[:12] not in issued.row.name


def forms(project: Project, canary: str) -> dict[str, dict[str, Any]]:
    """Return every page that takes a typed text, with the canary in each of its boxes."""
    group, incident = (first_of(model, project) for model in (FailureGroup, Incident))
    breaker = first_of(Breaker, project)
    rule = {
        "filter": "", "signal": "latency_p95", "detector": "threshold", "limit": "20000",
        "severity": "critical", "for_minutes": "5", "clear_minutes": "0",
        "no_data": "clear", "group_by": ["model"], "save": "1", "covers_all": "1",
    }  # fmt: skip
    channel = {
        "kind": "email", "email": "ada@example.org", "min_severity": "warning",
        "zone": "UTC", "digest_above": "10",
    }  # fmt: skip
    acts = {"id": group.pk, "text": canary, "release": canary}
    return {
        "/alerts/channels/new/": {"name": f"team {canary}", **channel},
        "/alerts/rules/new/": {"name": f"rule {canary}", **rule},
        "/alerts/silences/new/": {
            "hours": "1", "reason": f"because {canary}", "covers_all": "1",
        },
        "/settings/keys/": {"name": f"bot {canary}", "scopes": ["read"], "days": ""},
        "/deploys/": {
            "kind": "release", "version": f"v {canary}", "source": f"s {canary}",
            "environment": f"e {canary}", "note": f"because {canary}",
        },
        "/settings/redaction/": {"name": f"n {canary}", "kind": "own", "pattern": "x{5}"},
        "/settings/planning/": {"do": "stop", "reason": f"as {canary}"},
        "/views/save/": {"name": f"mine {canary}", "page": "now", "query": f"q={canary}"},
        "/failures/act/": {"verb": "comment", **acts},
        f"/incidents/{incident.pk}/comment/": {"text": canary},
        f"/incidents/{incident.pk}/resolve/": {"cause": "other", "text": canary},
        f"/incidents/{incident.pk}/silence/": {"hours": "1", "reason": canary},
        f"/incidents/{incident.pk}/link/": {"url": f"https://t.example/?t={canary}"},
        f"/breakers/{breaker.pk}/isolate/": {"reason": f"why {canary}"},
        f"/breakers/{breaker.pk}/close/": {"reason": f"why {canary}"},
        # The last: the session goes on in the new project.
        "/settings/projects/": {"do": "create", "create-name": f"shop {canary}"},
    }  # fmt: skip


def refused_forms(project: Project, canary: str) -> dict[str, dict[str, Any]]:
    """Return the pages that refuse a text with a secret, since it is used as it is."""
    model = make_model(project)
    named = {"adapter": "openai", "enabled": "on"}
    called = {
        "output_mode": "text", "last_output_mode": "text", "max_output_tokens": "100",
        "temperature": "0", "attempt_timeout_seconds": "10",
    }  # fmt: skip
    rule = {"signal": "call_failure_ratio", "detector": "change", "severity": "warning"}
    return {
        "/settings/providers/new/": {"name": canary, **named},
        "/settings/providers/new/?2": {
            "name": "n", "base_url": f"https://h.example/v1?key={canary}", **named,
        },
        f"/settings/providers/{model.provider_id}/models/new/": {"name": canary, **called},
        f"/settings/providers/{model.provider_id}/models/new/?2": {
            "name": "n", "prompt_version": canary, **called,
        },
        "/alerts/rules/new/": {
            "name": "r", "filter": f"model:{canary}", "no_data": "clear", **rule,
        },
        "/alerts/silences/new/": {"hours": "1", "reason": "r", "filter": f"model={canary}"},
        "/reports/new/": {"filter": f"model:{canary}", "cadence": "daily", "at": "08:00",
                          "zone": "UTC"},
    }  # fmt: skip


@pytest.fixture
def person(project: Project, settings: Any) -> Client:
    settings.FAILSOFT_REQUIRE_MFA = False
    user = make_member(project, "eva", Role.ADMIN)
    user.set_password(PASSWORD)
    user.save()
    return signed_in("eva")


def test_no_form_stores_or_logs_a_secret_that_was_typed(
    project: Project,
    person: Client,
    canary: str,
    log: io.StringIO,  # noqa: F811
) -> None:
    for path, fields in forms(project, canary).items():
        with transaction.atomic():
            answer = person.post(path, fields)
        assert answer.status_code in (200, 204, 302), path
        assert tables_holding(core_of(canary)) == [], path
    kept = {model._meta.db_table for model, _ in redacted_fields()}
    assert kept <= set(tables_holding("[REDACTED:"))
    assert PlanningStop.objects.get().reason == "as [REDACTED:openai_key]"
    names = Project.objects.exclude(pk=project.pk).values_list("name", "slug")
    assert list(names) == [("shop [REDACTED:openai_key]", "shop-redactedopenai_key")]
    assert core_of(canary) not in log.getvalue()
    assert core_of(canary) not in "".join(str(m.message()) for m in mail.outbox)


def test_a_text_that_is_used_as_it_is_is_refused_with_a_secret(
    project: Project, person: Client, canary: str
) -> None:
    for path, fields in refused_forms(project, canary).items():
        answer = person.post(path, fields)
        assert answer.status_code == 200, path
        assert "looks like a secret" in answer.content.decode(), path
        assert tables_holding(core_of(canary)) == [], path


UNTIL = "2027-01-01T00:00:00+00:00"


def bodies(project: Project, canary: str) -> dict[str, dict[str, Any]]:
    """Return every path of the API that takes a typed text, with the canary in it."""
    incident = first_of(Incident, project)
    breaker = first_of(Breaker, project)
    return {
        "alert-rules": {"name": f"rule {canary}"},
        "silences": {"reason": canary, "ends_at": UNTIL},
        f"incidents/{incident.pk}/comment": {"text": canary},
        f"incidents/{incident.pk}/resolve": {"cause": "other", "text": canary},
        f"breakers/{breaker.pk}/isolate": {"reason": canary},
        "deploys": {"at": UNTIL, "kind": "prompt", "version": "1", "note": canary},
    }


def test_no_request_stores_a_secret_that_was_typed(project: Project, canary: str) -> None:
    key = issue_key(project, "k", list(Scope)).text
    client = Client(headers={"Authorization": f"Bearer {key}"})
    for path, body in bodies(project, canary).items():
        answer = client.post(f"/api/v1/{path}", body, content_type="application/json")
        assert answer.status_code in (200, 201), (path, answer.content)
        assert core_of(canary) not in answer.content.decode()
    for path, body in {
        "alert-rules": {"name": "r", "filter": f"model={canary}"},
        "silences": {"ends_at": UNTIL, "filter": f"model={canary}"},
    }.items():
        answer = client.post(f"/api/v1/{path}", body, content_type="application/json")
        assert (answer.status_code, json.loads(answer.content)["code"]) == (422, "invalid")
    assert tables_holding(core_of(canary)) == []


@pytest.mark.parametrize("blank", ["", "   ", "\t"])
def test_a_name_is_never_empty(project: Project, person: Client, blank: str) -> None:
    for path, fields in forms(project, "x" * 8).items():
        for name in {"name", "create-name"} & set(fields):
            before = count_rows()
            person.post(path, {**fields, name: blank})
            assert count_rows() == before, path
    key = issue_key(project, "k", list(Scope)).text
    client = Client(headers={"Authorization": f"Bearer {key}"})
    body = {"name": blank}
    answer = client.post("/api/v1/alert-rules", body, content_type="application/json")
    assert answer.status_code == 422


def count_rows() -> int:
    named = {model for model, name in redacted_fields() if name == "name"}
    return sum(model._default_manager.count() for model in named)
