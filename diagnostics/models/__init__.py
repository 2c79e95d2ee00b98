"""Rows of what went wrong, and of who may see and send it."""

from diagnostics.models.api_key import ApiKey
from diagnostics.models.event import Event, EventIdentity, EventPayload
from diagnostics.models.heartbeat import Heartbeat
from diagnostics.models.outbox import OutboxMessage
from diagnostics.models.project import Membership, Project
from diagnostics.models.redaction_rule import RedactionRule, Rescrub

__all__ = [
    "ApiKey",
    "Event",
    "EventIdentity",
    "EventPayload",
    "Heartbeat",
    "Membership",
    "OutboxMessage",
    "Project",
    "RedactionRule",
    "Rescrub",
]
