"""JSON Schemas that agents register for the answers of their own nodes."""

from django.db import models
from django.db.models.functions import Now

from diagnostics.models.project import Project


class AgentSchema(models.Model):
    """One version of a node's schema; a version never changes, one of them is current."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="agent_schemas", db_index=False
    )
    node = models.CharField(max_length=63)
    version = models.CharField(max_length=200)
    json_schema = models.JSONField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # Null: kept as history, nothing is checked against it.
    current_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "node", "version"],
                name="diagnostics_agentschema_version_once",
            ),
            # Read with every batch of spans that carries answers.
            models.UniqueConstraint(
                fields=["project", "node"],
                condition=models.Q(current_since__isnull=False),
                name="diagnostics_agentschema_one_current",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.version}"


class SpanVerdict(models.Model):
    """What a log record told of a call's answer before the span of the call arrived.

    `content` is the redacted event as far as it is known; the text of the answer is not
    kept. A row lives for minutes: the span takes it, or it becomes an event by itself.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    trace_id = models.CharField(max_length=32)
    span_id = models.CharField(max_length=16)
    received_at = models.DateTimeField()
    content = models.JSONField()

    class Meta:
        constraints = [
            # Read with every batch of spans.
            models.UniqueConstraint(
                fields=["project", "trace_id", "span_id"],
                name="diagnostics_spanverdict_once",
            ),
        ]
        indexes = [
            # Read by the settling of what no span has asked for.
            models.Index(fields=["received_at"], name="diagnostics_spanverdict_age"),
        ]

    def __str__(self) -> str:
        return f"{self.trace_id}/{self.span_id}"
