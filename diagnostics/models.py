"""Rows of what went wrong, and of who may see and send it."""

from diagnostics.accounts.models import (
    ApiKey,
    AuditEntry,
    Invitation,
    Membership,
    Profile,
    Project,
    SavedView,
)
from diagnostics.alerting.incident_models import Incident, IncidentNote, IncidentSlice, Transition
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.rule_models import AlertRule, AlertSlot, AlertState, Evaluation
from diagnostics.alerting.silence_models import MaintenanceWindow, Silence
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.ingest.models import (
    AgentSchema,
    Deploy,
    KeyBucket,
    KeyMinute,
    Quota,
    Reject,
    SpanVerdict,
    Usage,
)
from diagnostics.prices.models import Price
from diagnostics.redaction.rules import RedactionRule, Rescrub
from diagnostics.reports.models import Report, ReportDelivery, Subscription
from diagnostics.store.models import (
    Event,
    EventIdentity,
    EventPayload,
    Heartbeat,
    OutboxMessage,
    Outcome,
    Series,
    Version,
)
from diagnostics.verdict.ratings import VerdictMark

__all__ = [
    "AgentSchema",
    "AlertRule",
    "AlertSlot",
    "AlertState",
    "ApiKey",
    "AuditEntry",
    "Channel",
    "Deploy",
    "Evaluation",
    "Event",
    "EventIdentity",
    "EventPayload",
    "FailureGroup",
    "GroupChange",
    "Heartbeat",
    "Incident",
    "IncidentNote",
    "IncidentSlice",
    "Invitation",
    "KeyBucket",
    "KeyMinute",
    "MaintenanceWindow",
    "Membership",
    "Notification",
    "OutboxMessage",
    "Outcome",
    "Price",
    "Profile",
    "Project",
    "Quota",
    "RedactionRule",
    "Reject",
    "Report",
    "ReportDelivery",
    "Rescrub",
    "SavedView",
    "Series",
    "Silence",
    "SpanVerdict",
    "Subscription",
    "Transition",
    "Usage",
    "VerdictMark",
    "Version",
]
