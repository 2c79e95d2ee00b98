"""Rows of runs, for the list of runs."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, Q, Value, When

from diagnostics.constraints import ProjectRow, PurgedRow, index, known, unique


class RunOutcome(models.TextChoices):
    """How a run ended; `open` until an event says so."""

    OK_FIRST = "ok_first"
    RECOVERED = "recovered"
    UNCHECKED = "unchecked"
    DEGRADED = "degraded"
    CANCELLED = "cancelled"
    OPEN = "open"


class AgentRun(PurgedRow):
    """Everything an agent did for one correlation id, aggregated from its events.

    It is written by the same statement as the events (record_events.sql), and rebuilt from them
    after events were deleted or changed (diagnostics.store.runs).
    """

    named = "{0.correlation_id}"
    Outcome = RunOutcome

    pk = models.CompositePrimaryKey("project", "correlation_id")
    # Compared byte by byte, so that the key also serves prefix searches.
    correlation_id = models.TextField(db_collation="C")
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    calls = models.IntegerField(db_default=0)
    # The largest number for one answer.
    attempts = models.IntegerField(db_default=0)
    # Requested answers: good at the first attempt, at a later one, not checked, never good.
    ok_first = models.IntegerField(db_default=0)
    recovered = models.IntegerField(db_default=0)
    unchecked = models.IntegerField(db_default=0)
    degraded = models.IntegerField(db_default=0)
    # Calls and answers that the caller gave up.
    cancelled = models.IntegerField(db_default=0)
    input_tokens = models.BigIntegerField(db_default=0)
    output_tokens = models.BigIntegerField(db_default=0)
    # The first few by name; `provider/model`, as far as reported.
    nodes = ArrayField(models.TextField(), db_default=Value("{}"))
    called_models = ArrayField(models.TextField(), db_default=Value("{}"))
    # Kinds and error types of its events, without good answers, by name.
    kinds = ArrayField(models.TextField(), db_default=Value("{}"))
    # The event that gives the names below: the latest with a model, else the latest.
    decided_at = models.DateTimeField(null=True)
    decided_by = models.UUIDField(null=True)
    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    environment = models.TextField(null=True)
    source = models.TextField(null=True)
    release = models.TextField(null=True)
    prompt_version = models.TextField(null=True)
    schema = models.TextField(null=True)
    # When its attempts are numbered, if events lack attempt numbers.
    settles_at = models.DateTimeField(null=True)
    outcome = models.GeneratedField(
        expression=Case(
            When(degraded__gt=0, then=Value(RunOutcome.DEGRADED.value)),
            When(cancelled__gt=0, then=Value(RunOutcome.CANCELLED.value)),
            When(recovered__gt=0, then=Value(RunOutcome.RECOVERED.value)),
            When(unchecked__gt=0, then=Value(RunOutcome.UNCHECKED.value)),
            When(ok_first__gt=0, then=Value(RunOutcome.OK_FIRST.value)),
            default=Value(RunOutcome.OPEN.value),
        ),
        output_field=models.TextField(),
        db_persist=True,
    )

    class Meta:
        indexes = [
            # Read by the list of runs, newest first, and by the purge.
            index("diagnostics_agentrun_newest", "project -began_at -correlation_id"),
            # Read by the list of runs filtered by a kind of failure or degraded runs.
            index(
                "diagnostics_agentrun_failures", "project -began_at -correlation_id", ~Q(kinds=[])
            ),
            # Read by the settling of runs reported by spans.
            index("diagnostics_agentrun_due", "settles_at", Q(settles_at__isnull=False)),
        ]


class AssessedAs(models.TextChoices):
    """The verdict of a user or evaluator on an answer."""

    GOOD = "good"
    BAD = "bad"


class Assessment(ProjectRow):
    """A later rating of a run's answer by a user or evaluator; the latest of each judge.

    Joined to its run on read, since the run may arrive later.
    """

    named = "{0.correlation_id}: {0.verdict} by {0.source}"
    # Empty until its response is known.
    correlation_id = models.TextField(db_collation="C")
    source = models.TextField()
    # One call of the run, by its span or its response; empty for the run as a whole.
    subject = models.CharField(max_length=36, blank=True)
    verdict = models.CharField(max_length=4, choices=AssessedAs)
    score = models.FloatField(null=True)
    reason = models.TextField(null=True)
    assessed_at = models.DateTimeField()
    received_at = models.DateTimeField()
    # Set by telemetry whose span has not arrived yet, to find it later.
    trace_id = models.CharField(max_length=32, blank=True)
    response = models.UUIDField(null=True)
    is_linked = models.BooleanField(default=True)

    class Meta:
        constraints = [
            # Also read with every page of runs, and by the counts of series.
            unique("diagnostics_assessment_once", "project correlation_id source subject"),
            known("diagnostics_assessment_verdict_known", "verdict", AssessedAs),
        ]
        indexes = [
            # Read with every batch of spans.
            index("diagnostics_assessment_trace", "project trace_id", Q(is_linked=False)),
            index("diagnostics_assessment_reply", "project response", Q(is_linked=False)),
            # Read by the purge.
            index("diagnostics_assessment_age", "received_at"),
        ]
