"""Every column that keeps text is redacted again after a new rule, or says why not."""

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models

from diagnostics.redaction import rescrub
from diagnostics.store.models import StoredEvent

TEXT = (models.CharField, models.TextField, models.JSONField, ArrayField)
# A column with choices holds one of them; the rest is grouped by the reason.
DIMENSION = "rows are grouped, joined and found by it; it was redacted at the door"
CLOSED = "our own words: a code, a kind, the name of a task, a digest, a zone"
IDENTITY = "a name of the machine that other rows and settings point to"
FILTER = "a search over dimensions; it was redacted when it was saved"
ELSEWHERE = "of the installation or of a person: no project's rules hold"
CHAIN = "append-only and hash-chained; it was redacted when it was written"
SETTINGS = "settings that people chose; secrets in them are references"
NOT_SCRUBBED: dict[str, dict[str, str]] = {
    DIMENSION: {
        "agents.Attempt": "node provider model error_type served_model upstream system_fingerprint",
        "agents.Breaker": "provider model operation",
        "agents.FixPattern": "schema error_class code pointer change before after",
        "agents.FixSuccess": "correlation_id",
        "agents.Goal": "correlation_id environment source",
        "agents.PurgeOrder": "correlation_id",
        "diagnostics.AgentRun": "correlation_id nodes called_models provider model environment"
        " source release prompt_version schema kinds",
        "diagnostics.AgentSchema": "node version json_schema",
        "diagnostics.AgentSpan": "node",
        "diagnostics.Assessment": "correlation_id source",
        "diagnostics.AlertState": "slice detector_state memory",
        "diagnostics.Answerer": "environment provider model value",
        "diagnostics.Deploy": "source environment provider model version previous",
        "diagnostics.Event": "node kind correlation_id provider model environment source release"
        " schema schema_version prompt_version parse_error_type reason status finish_reason"
        " output_mode time_mark unchecked call_error_type served upstream system_fingerprint"
        " region credential",
        "diagnostics.FailureGroup": "node schema kind error_type pointer fixed_in releases_before",
        "diagnostics.Incident": "cause cause_value",
        "diagnostics.IncidentSlice": "slice",
        "diagnostics.KeyMinute": "source",
        "diagnostics.Outcome": "source environment node provider model release prompt_version"
        " schema schema_version",
        "diagnostics.Price": "provider model",
        "diagnostics.ProjectStatus": "series",
        "diagnostics.Reject": "source event_id",
        "diagnostics.Series": "environment node provider model",
        "diagnostics.SeriesDetector": "detector_state memory",
        "diagnostics.SeriesName": "key name",
        "diagnostics.UnplacedCall": "correlation_id",
        "diagnostics.VerdictMark": "cause cause_value",
        "diagnostics.Version": "prompt_version schema schema_version source release served"
        " region credential",
        "plans.CompletionCheck": "owner correlation_id check_id",
        "plans.Run": "correlation_id release",
    },
    CLOSED: {
        "agents.ActionBatch": "toolset",
        "agents.Attempt": "output_mode told_patterns withheld_patterns finish_reason",
        "agents.Breaker": "cause window",
        "agents.BreakerTransition": "cause",
        "agents.Goal": "plan_source runner toolset retry budget idempotency_digest",
        "agents.ModelCheck": "fault",
        "diagnostics.EventPayload": "redacted_kinds",
        "diagnostics.Heartbeat": "name",
        "diagnostics.Notification": "severity",
        "diagnostics.OutboxMessage": "task queue kwargs",
        "diagnostics.ProjectTurn": "passed_over",
        "diagnostics.Price": "currency edition",
        "diagnostics.Reject": "endpoint code",
        "diagnostics.Report": "digest zone",
        "diagnostics.ReportDelivery": "message_id",
        "diagnostics.Rescrub": "cursor",
        "diagnostics.SavedView": "page",
        "diagnostics.AgentSpan": "trace_id span_id",
        "diagnostics.Assessment": "subject trace_id",
        "diagnostics.SpanCall": "trace_id span_id parent_id",
        "diagnostics.UnplacedCall": "trace_id parent_id",
        "diagnostics.SpanVerdict": "trace_id span_id",
        "plans.CompletionCheck": "checker fingerprints",
        "plans.Run": "contract_version tool_digests on_end_task on_end_kwargs",
    },
    IDENTITY: {
        "agents.Entry": "id",
        "agents.Goal": "tools",
        "agents.LanguageModel": "name supported_output_modes prompt_version",
        "agents.Provider": "name base_url credential",
        "diagnostics.ApiKey": "key_id scopes",
        "diagnostics.Channel": "shown credential zone",
        "diagnostics.Project": "slug name",
        "diagnostics.RedactionRule": "name pattern kind",
        "diagnostics.Subscription": "address token zone",
        "plans.ProjectToolPolicy": "tool",
        "plans.RunStep": "step_id tool dependencies",
        "plans.ToolSlot": "tool",
        "plans.WorkingItem": "owner name",
    },
    FILTER: {
        "diagnostics.AlertRule": "filter group_by",
        "diagnostics.Incident": "filter",
        "diagnostics.Report": "query",
        "diagnostics.Silence": "filter",
        "diagnostics.Subscription": "query",
    },
    ELSEWHERE: {
        "agents.BreakerTransition": "actor",
        "agents.FixPattern": "decided_by",
        "agents.FixPolicy": "changed_by",
        "diagnostics.Invitation": "email",
        "diagnostics.Profile": "zone",
        "plans.McpServer": "name transport server_name server_version protocol_version digest"
        " last_error",
        "plans.McpTool": "name remote_name description input_schema digest",
        "plans.Run": "requested_by",
        "plans.RunStep": "resolved_by",
    },
    CHAIN: {"diagnostics.AuditEntry": "actor action target details address"},
    SETTINGS: {
        "agents.Goal": "completion_check",
        "diagnostics.AlertRule": "parameters routing escalation standard",
    },
}


def own_columns() -> set[tuple[str, str]]:
    """Give every column of our apps that can hold any text."""
    ours = (apps.get_app_config(name).get_models() for name in ("agents", "diagnostics", "plans"))
    return {
        (model._meta.label, field.name)
        for app in ours
        for model in app
        for field in model._meta.concrete_fields
        # The table of Event once more.
        if isinstance(field, TEXT) and not field.choices and model is not StoredEvent
    }


def excused_columns() -> set[tuple[str, str]]:
    """Give the columns that stay, from the table above."""
    return {
        (label, name)
        for models_of in NOT_SCRUBBED.values()
        for label, names in models_of.items()
        for name in names.split()
    }


def scrubbed_columns() -> set[tuple[str, str]]:
    """Give the columns that are redacted again."""
    return {
        (source.model._meta.label, name)
        for source in rescrub._sources
        for name in (*source.texts, *source.documents)
    }


def test_every_column_of_text_is_redacted_again_or_says_why_not() -> None:
    assert own_columns() - scrubbed_columns() - excused_columns() == set()


def test_no_column_is_both_and_none_is_excused_that_is_not_there() -> None:
    assert excused_columns() & scrubbed_columns() == set()
    assert excused_columns() - own_columns() == set()
