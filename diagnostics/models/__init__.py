"""Rows of what went wrong, and of who may see and send it."""

from diagnostics.models.agent_schema import AgentSchema, SpanVerdict
from diagnostics.models.api_key import ApiKey
from diagnostics.models.channel import Channel
from diagnostics.models.deploy import Deploy
from diagnostics.models.event import Event, EventIdentity, EventPayload
from diagnostics.models.group import FailureGroup, GroupChange
from diagnostics.models.heartbeat import Heartbeat
from diagnostics.models.outbox import OutboxMessage
from diagnostics.models.outcome import Outcome
from diagnostics.models.project import Membership, Project
from diagnostics.models.quota import KeyBucket, Quota, Usage
from diagnostics.models.redaction_rule import RedactionRule, Rescrub
from diagnostics.models.reject import Reject
from diagnostics.models.rollup import Series, Version
from diagnostics.models.saved_view import SavedView
from diagnostics.models.verdict_mark import VerdictMark

__all__ = [
    "AgentSchema",
    "ApiKey",
    "Channel",
    "Deploy",
    "Event",
    "EventIdentity",
    "EventPayload",
    "FailureGroup",
    "GroupChange",
    "Heartbeat",
    "KeyBucket",
    "Membership",
    "OutboxMessage",
    "Outcome",
    "Project",
    "Quota",
    "RedactionRule",
    "Reject",
    "Rescrub",
    "SavedView",
    "Series",
    "SpanVerdict",
    "Usage",
    "VerdictMark",
    "Version",
]
