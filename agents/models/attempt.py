"""One call of a provider for a goal: stored before it is made, completed after."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from agents.models.goal import Goal
from diagnostics.models import Project


class Attempt(models.Model):
    """An attempt of the ladder at one node in one cycle.

    The row exists before the call, so that a crash cannot spend the budget twice;
    events take their id and time from it (X-16). All text is redacted.
    """

    class State(models.TextChoices):
        """What became of the call."""

        CALLING = "calling"
        VALID = "valid"
        INVALID = "invalid"
        # No answer to judge: timeout, transport, rate limit.
        CALL_FAILED = "call_failed"

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    goal = models.ForeignKey(Goal, models.CASCADE, related_name="attempts")
    node = models.CharField(max_length=64)
    cycle = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=State, default=State.CALLING)
    provider = models.CharField(max_length=100, null=True, blank=True)
    model = models.CharField(max_length=200, null=True, blank=True)
    output_mode = models.CharField(max_length=8)
    simplified = models.BooleanField(default=False)
    dropped_constraints = models.JSONField(default=list, blank=True)
    max_output_tokens = models.PositiveIntegerField()
    # Null when the provider takes none, so none was sent.
    temperature = models.FloatField(null=True, blank=True)
    timeout_seconds = models.PositiveIntegerField()
    # The feedback that went with the prompt, redacted; empty for the first attempt.
    feedback = models.TextField(blank=True, default="")
    # Fix patterns that the prompt told, or that were withheld for comparison.
    told_patterns = ArrayField(models.BigIntegerField(), default=list, blank=True)
    withheld_patterns = ArrayField(models.BigIntegerField(), default=list, blank=True)
    # A parse error type when invalid, a call error type when the call failed.
    error_type = models.CharField(max_length=32, null=True, blank=True)
    errors = models.JSONField(default=list, blank=True)
    preview = models.TextField(blank=True, default="")
    repairs = models.JSONField(default=list, blank=True)
    coerced = models.JSONField(default=list, blank=True)
    finish_reason = models.CharField(max_length=64, null=True, blank=True)
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    # Transport retries beside the ladder; not attempts.
    transport_retries = models.PositiveIntegerField(default=0)
    called_at = models.DateTimeField()
    occurred_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["goal", "cycle", "node", "attempt"]
        constraints = [
            models.UniqueConstraint(
                fields=["goal", "cycle", "node", "attempt"],
                name="agents_attempt_numbered_once",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["calling", "valid", "invalid", "call_failed"]),
                name="agents_attempt_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(attempt__gte=1),
                name="agents_attempt_counts_from_one",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.cycle}.{self.attempt} of {self.goal_id}"
