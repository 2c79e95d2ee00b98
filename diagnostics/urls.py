"""Addresses of the diagnostics app."""

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.views import SpectacularAPIView

from diagnostics.api.agent_schemas import AgentSchemasView, AgentSchemaView
from diagnostics.api.deploys import DeploysView
from diagnostics.api.docs import api_docs
from diagnostics.api.events import EventsView
from diagnostics.api.failures import FailuresView, FailureView
from diagnostics.api.otlp import LogsView, TracesView
from diagnostics.api.outcomes import OutcomesView
from diagnostics.api.rejects import IngestView, RejectsView
from diagnostics.api.series import SeriesView
from diagnostics.api.verdict import VerdictView
from diagnostics.metrics import metrics
from diagnostics.views.account import account
from diagnostics.views.exports import export
from diagnostics.views.ingest import ingest, send_test_event
from diagnostics.views.now import now
from diagnostics.views.project_switch import switch_project
from diagnostics.views.redaction import redact_again, redaction, switch_rule
from diagnostics.views.saved_views import change, save, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", now, name="now"),
    path("ingest/", ingest, name="ingest"),
    path("ingest/test/", send_test_event, name="send_test_event"),
    path("account/", account, name="account"),
    path("project/", switch_project, name="switch_project"),
    path("export/<slug:name>.<slug:ending>", export, name="export"),
    path("views/", views, name="views"),
    path("views/save/", save, name="save_view"),
    path("views/<int:view_id>/change/", change, name="change_view"),
    path("api/v1/events", EventsView.as_view(), name="api_events"),
    path("api/v1/outcomes", OutcomesView.as_view(), name="api_outcomes"),
    path("api/v1/deploys", DeploysView.as_view(), name="api_deploys"),
    path("api/v1/failures", FailuresView.as_view(), name="api_failures"),
    path("api/v1/failures/<int:group_id>", FailureView.as_view(), name="api_failure"),
    path("api/v1/rejects", RejectsView.as_view(), name="api_rejects"),
    path("api/v1/ingest", IngestView.as_view(), name="api_ingest"),
    path("api/v1/series", SeriesView.as_view(), name="api_series"),
    path("api/v1/verdict", VerdictView.as_view(), name="api_verdict"),
    path("api/v1/schemas", AgentSchemasView.as_view(), name="api_agent_schemas"),
    path(
        "api/v1/schemas/<str:node>", AgentSchemaView.as_view(), name="api_agent_schema"
    ),
    path("v1/traces", TracesView.as_view(), name="otlp_traces"),
    path("v1/logs", LogsView.as_view(), name="otlp_logs"),
    path("api/schema", SpectacularAPIView.as_view(), name="api_schema"),
    path("api/docs/", api_docs, name="api_docs"),
    path("metrics", metrics, name="metrics"),
    path("settings/redaction/", redaction, name="redaction"),
    path("settings/redaction/again/", redact_again, name="redact_again"),
    path("settings/redaction/<int:identity>/switch/", switch_rule, name="switch_rule"),
]
