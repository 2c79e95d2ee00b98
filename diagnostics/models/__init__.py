"""Rows of what went wrong, and of who may see and send it."""

from diagnostics.models.agent_schema import AgentSchema, SpanVerdict
from diagnostics.models.alert_rule import AlertRule, Severity
from diagnostics.models.alert_state import AlertSlot, AlertState, Evaluation
from diagnostics.models.api_key import ApiKey
from diagnostics.models.audit_entry import AuditEntry
from diagnostics.models.channel import Channel
from diagnostics.models.deploy import Deploy
from diagnostics.models.event import Event, EventIdentity, EventPayload
from diagnostics.models.group import FailureGroup, GroupChange
from diagnostics.models.heartbeat import Heartbeat
from diagnostics.models.incident import (
    Incident,
    IncidentNote,
    IncidentSlice,
    Transition,
)
from diagnostics.models.invitation import Invitation
from diagnostics.models.key_minute import KeyMinute
from diagnostics.models.notification import Notification
from diagnostics.models.outbox import OutboxMessage
from diagnostics.models.outcome import Outcome
from diagnostics.models.price import Price
from diagnostics.models.profile import Profile
from diagnostics.models.project import Membership, Project
from diagnostics.models.quota import KeyBucket, Quota, Usage
from diagnostics.models.redaction_rule import RedactionRule, Rescrub
from diagnostics.models.reject import Reject
from diagnostics.models.report import Report, ReportDelivery, Subscription
from diagnostics.models.rollup import Series, Version
from diagnostics.models.saved_view import SavedView
from diagnostics.models.silence import MaintenanceWindow, Silence
from diagnostics.models.verdict_mark import VerdictMark

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
    "Severity",
    "Silence",
    "SpanVerdict",
    "Subscription",
    "Transition",
    "Usage",
    "VerdictMark",
    "Version",
]
