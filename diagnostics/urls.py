"""URLs of the diagnostics app."""

from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from diagnostics.alerting import channel_views as channels
from diagnostics.alerting import incident_action_views as actions
from diagnostics.alerting import rule_views as rules
from diagnostics.alerting.incident_api import (
    AcknowledgeView,
    CommentView,
    IncidentsView,
    IncidentView,
    ResolveView,
)
from diagnostics.alerting.incident_views import incident, incident_task, incidents
from diagnostics.alerting.rule_api import (
    AlertRulesView,
    AlertRuleView,
    BackTestView,
    SilencesView,
    SilenceView,
)
from diagnostics.alerting.task_text import verdict_task
from diagnostics.console.api import SeriesView, VerdictView
from diagnostics.console.compare import compare_csv, compare_page
from diagnostics.console.event_api import EventsView
from diagnostics.console.exports import export
from diagnostics.console.live import live_rows
from diagnostics.console.models_page import models
from diagnostics.console.now import mark_now, now
from diagnostics.console.prompts import prompts
from diagnostics.console.run_api import AgentRunsView, AgentRunView
from diagnostics.failures.api import FailuresView, FailureView
from diagnostics.failures.views import act_on_failures, failures
from diagnostics.ingest.api.agent_schemas import AgentSchemasView, AgentSchemaView
from diagnostics.ingest.api.deploys import DeploysView
from diagnostics.ingest.api.otlp import GRPC, LogsView, MetricsView, TracesView, refuse_grpc
from diagnostics.ingest.api.outcomes import OutcomesView
from diagnostics.ingest.api.rejects import IngestView, RejectsView
from diagnostics.ingest.views import deploys, ingest, send_test_event
from diagnostics.mcp.api import McpView
from diagnostics.metrics import metrics
from diagnostics.reports import views as reports
from diagnostics.reports.subscriptions import LinkAction
from diagnostics.rest.docs import api_docs
from diagnostics.settings import audit, keys, members, prices, projects
from diagnostics.settings.account import account, dismiss_notice, sign_out_everywhere, theme
from diagnostics.settings.get_started import setup
from diagnostics.settings.members import invitation
from diagnostics.settings.projects import switch_project
from diagnostics.settings.redaction import redact_again, redaction, switch_rule
from diagnostics.settings.saved_views import change, save, views
from diagnostics.web.navigation import help_page

urlpatterns: list[URLPattern | URLResolver] = [
    path("", now, name="now"),
    path("verdict/mark/", mark_now, name="mark_verdict"),
    path("verdict/task/", verdict_task, name="verdict_task"),
    path("failures/", failures, name="failures"),
    path("failures/act/", act_on_failures, name="act_on_failures"),
    path("models/", models, name="models"),
    path("compare/", compare_page, name="compare"),
    path("prompts/", prompts, name="prompts"),
    path("incidents/", incidents, name="incidents"),
    path("incidents/act/", actions.act_on_incidents, name="act_on_incidents"),
    path("incidents/<int:number>/", incident, name="incident"),
    path("incidents/<int:number>/task/", incident_task, name="incident_task"),
    path(
        "incidents/<int:number>/acknowledge/",
        actions.acknowledge_incident,
        name="acknowledge_incident",
    ),
    path("incidents/<int:number>/resolve/", actions.resolve_incident, name="resolve_incident"),
    path("incidents/<int:number>/rate/", actions.rate_incident, name="rate_incident"),
    path("incidents/<int:number>/comment/", actions.comment_incident, name="comment_incident"),
    path("incidents/<int:number>/assign/", actions.assign_incident, name="assign_incident"),
    path("incidents/<int:number>/link/", actions.link_incident, name="link_incident"),
    path("incidents/<int:number>/silence/", actions.silence_incident, name="silence_incident"),
    path("acknowledge/<str:token>/", actions.acknowledge_link, name="acknowledge_link"),
    path("alerts/", RedirectView.as_view(pattern_name="alert_rules")),
    path("alerts/rules/", rules.alert_rules, name="alert_rules"),
    path("alerts/rules/new/", rules.alert_rule, name="alert_rule_new"),
    path("alerts/rules/new/test/", rules.alert_rule_test, name="alert_rule_new_test"),
    path("alerts/rules/<int:number>/", rules.alert_rule, name="alert_rule"),
    path("alerts/rules/<int:number>/test/", rules.alert_rule_test, name="alert_rule_test"),
    path("alerts/rules/<int:number>/switch/", rules.alert_rule_switch, name="alert_rule_switch"),
    path("alerts/rules/<int:number>/delete/", rules.alert_rule_delete, name="alert_rule_delete"),
    path("alerts/silences/", rules.silences, name="alert_silences"),
    path("alerts/silences/new/", rules.silence_create, name="silence_create"),
    path("alerts/silences/<int:number>/end/", rules.silence_end, name="silence_end"),
    path("alerts/channels/", channels.channels, name="alert_channels"),
    path("alerts/channels/new/", channels.new, name="alert_channel_new"),
    path("alerts/channels/seen/", channels.failures_seen, name="failures_seen"),
    path("alerts/channels/<int:number>/", channels.channel, name="alert_channel"),
    path("alerts/channels/<int:number>/test/", channels.test, name="alert_channel_test"),
    path("alerts/channels/<int:number>/switch/", channels.switch, name="alert_channel_switch"),
    path("alerts/channels/<int:number>/rotate/", channels.rotate, name="alert_channel_rotate"),
    path("alerts/channels/<int:number>/delete/", channels.delete, name="alert_channel_delete"),
    path(
        "alerts/notifications/<int:number>/again/",
        channels.retry_notification,
        name="retry_notification",
    ),
    path("ingest/", ingest, name="ingest"),
    path("deploys/", deploys, name="deploys"),
    path("ingest/test/", send_test_event, name="send_test_event"),
    path("account/", account, name="account"),
    path("account/sign-out/", sign_out_everywhere, name="sign_out_everywhere"),
    path("account/theme/", theme, name="theme"),
    path("account/notice/", dismiss_notice, name="dismiss_notice"),
    path("help/", help_page, name="help"),
    # Where the documentation was before 0.2.0.
    path("help/docs/<slug:name>/", RedirectView.as_view(url="/docs/%(name)s/", permanent=True)),
    path("project/", switch_project, name="switch_project"),
    path("export/compare.csv", compare_csv, name="compare_csv"),
    path("export/<slug:name>.<slug:ending>", export, name="export"),
    path("live/rows/", live_rows, name="live_rows"),
    path("views/", views, name="views"),
    path("views/save/", save, name="save_view"),
    path("views/<int:view_id>/change/", change, name="change_view"),
    path("api/v1/events", EventsView.as_view(), name="api_events"),
    path("api/v1/outcomes", OutcomesView.as_view()),
    path("api/v1/deploys", DeploysView.as_view()),
    path("api/v1/failures", FailuresView.as_view()),
    path("api/v1/failures/<int:group_id>", FailureView.as_view()),
    path("api/v1/rejects", RejectsView.as_view()),
    path("api/v1/ingest", IngestView.as_view()),
    path("api/v1/key", keys.KeyView.as_view()),
    path("api/v1/series", SeriesView.as_view(), name="api_series"),
    path("api/v1/runs", AgentRunsView.as_view()),
    # A correlation id may hold slashes.
    path("api/v1/runs/<path:reference>", AgentRunView.as_view()),
    path("api/v1/incidents", IncidentsView.as_view(), name="api_incidents"),
    path("api/v1/incidents/<int:incident_id>", IncidentView.as_view(), name="api_incident"),
    path("api/v1/incidents/<int:incident_id>/acknowledge", AcknowledgeView.as_view()),
    path("api/v1/incidents/<int:incident_id>/resolve", ResolveView.as_view()),
    path("api/v1/incidents/<int:incident_id>/comment", CommentView.as_view()),
    path("api/v1/alert-rules", AlertRulesView.as_view()),
    path("api/v1/alert-rules/backtest", BackTestView.as_view()),
    path("api/v1/alert-rules/<int:rule_id>", AlertRuleView.as_view()),
    path("api/v1/silences", SilencesView.as_view()),
    path("api/v1/silences/<int:silence_id>", SilenceView.as_view()),
    path("api/v1/verdict", VerdictView.as_view(), name="api_verdict"),
    path("api/v1/schemas", AgentSchemasView.as_view()),
    path("api/v1/schemas/<str:node>", AgentSchemaView.as_view()),
    path("v1/traces", TracesView.as_view(), name="otlp_traces"),
    path(f"{GRPC}.trace.v1.TraceService/Export", refuse_grpc, name="grpc_traces"),
    path(f"{GRPC}.logs.v1.LogsService/Export", refuse_grpc, name="grpc_logs"),
    path(f"{GRPC}.metrics.v1.MetricsService/Export", refuse_grpc, name="grpc_metrics"),
    path("v1/logs", LogsView.as_view(), name="otlp_logs"),
    path("v1/metrics", MetricsView.as_view(), name="otlp_metrics"),
    path("mcp", McpView.as_view(), name="mcp"),
    path("api/schema", SpectacularAPIView.as_view(), name="api_schema"),
    path("api/docs/", api_docs, name="api_docs"),
    path("metrics", metrics, name="metrics"),
    path("invitations/<str:token>/", invitation, name="invitation"),
    path("setup/", setup, name="setup"),
    path("settings/", projects.settings_index, name="settings"),
    path("settings/projects/", projects.projects, name="settings_projects"),
    path("settings/members/", members.members, name="settings_members"),
    path("settings/members/<int:identity>/change/", members.change_member, name="change_member"),
    path("settings/members/<int:identity>/remove/", members.remove_member, name="remove_member"),
    path(
        "settings/invitations/<int:identity>/revoke/",
        members.revoke_invitation,
        name="revoke_invitation",
    ),
    path("settings/keys/", keys.keys, name="settings_keys"),
    path("settings/keys/<int:identity>/rotate/", keys.rotate_key, name="rotate_key"),
    path("settings/keys/<int:identity>/revoke/", keys.revoke, name="revoke_key"),
    path("settings/quotas/", projects.quotas, name="settings_quotas"),
    path("settings/retention/", projects.retention, name="settings_retention"),
    path("settings/mail/", projects.mail, name="settings_mail"),
    path("settings/audit/", audit.audit, name="settings_audit"),
    path("settings/audit/export/", audit.export_audit, name="settings_audit_export"),
    path("settings/prices/", prices.prices, name="prices"),
    path("settings/prices/<int:identity>/remove/", prices.remove_price, name="remove_price"),
    path("settings/redaction/", redaction, name="redaction"),
    path("settings/redaction/again/", redact_again, name="redact_again"),
    path("settings/redaction/<int:identity>/switch/", switch_rule, name="switch_rule"),
    path("reports/", reports.reports, name="reports"),
    path("reports/new/", reports.report_new, name="report_new"),
    path("reports/<int:number>/", reports.report, name="report"),
    path("reports/<int:number>.txt", reports.report_text, name="report_text"),
    path("reports/<int:number>/mail/", reports.report_mail, name="report_mail"),
    path("reports/subscriptions/<int:number>/", reports.report_edit, name="report_edit"),
    path("reports/subscriptions/<int:number>/order/", reports.report_order, name="report_order"),
    path(
        "reports/subscriptions/<int:number>/preview/", reports.report_preview, name="report_preview"
    ),
    path(
        "reports/subscriptions/<int:number>/preview/mail/",
        reports.report_preview_mail,
        name="report_preview_mail",
    ),
    path("reports/subscriptions/<int:number>/send/", reports.report_send, name="report_send"),
    path(
        "reports/unsubscribe/<str:token>/",
        reports.report_link,
        {"order": LinkAction.UNSUBSCRIBE},
        name="report_unsubscribe",
    ),
    path(
        "reports/pause/<str:token>/",
        reports.report_link,
        {"order": LinkAction.PAUSE},
        name="report_pause",
    ),
]
