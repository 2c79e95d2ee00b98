"""How each slice of a rule stands, and every look that was taken.

`diagnostics.alerts.alerting` writes here.
"""

from django.db import models

from diagnostics.core.alerting import states
from diagnostics.core.choices import choices_of, values_of
from diagnostics.models.alert_rule import AlertRule
from diagnostics.models.project import Project


class AlertState(models.Model):
    """How one slice of a rule stands, and what the detector remembers of it."""

    State = states.State

    rule = models.ForeignKey(AlertRule, models.CASCADE, related_name="states")
    # The values of the rule's group_by: {"provider": "acme", "model": "m-1"}.
    slice = models.JSONField(default=dict)
    # md5 of them as canonical JSON: texts may be too long for an index.
    key = models.UUIDField()
    state = models.CharField(max_length=16, choices=choices_of(State), default=State.OK)
    since = models.DateTimeField()
    # The detector's memory of the last minutes, and of the last days.
    detector_state = models.JSONField(default=dict)
    memory = models.JSONField(default=dict)
    # The rule's version that this memory belongs to.
    rule_version = models.PositiveIntegerField(default=1)
    last_data_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "diagnostics_alertstate"
        constraints = [
            # Read by the evaluator.
            models.UniqueConstraint(fields=["rule", "key"], name="diagnostics_alertstate_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=values_of(states.State)),
                name="diagnostics_alertstate_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.state}: {self.slice}"


class Evaluation(models.Model):
    """What one look at one slice found; kept for some weeks."""

    state = models.ForeignKey(
        AlertState, models.CASCADE, related_name="evaluations", db_index=False
    )
    # The minute it was for.
    slot = models.DateTimeField()
    k = models.BigIntegerField()
    n = models.BigIntegerField()
    value = models.FloatField()
    bound = models.FloatField()
    rule_version = models.PositiveIntegerField()
    verdict = models.CharField(max_length=8, choices=choices_of(states.Said))
    # How the slice stood after it.
    state_after = models.CharField(max_length=16, choices=choices_of(states.State))
    # Computed over the past (a back-test that was kept), not at its time.
    is_backfilled = models.BooleanField(default=False)

    class Meta:
        db_table = "diagnostics_evaluation"
        constraints = [
            # Read by strips and charts of a slice: latest first.
            models.UniqueConstraint(fields=["state", "slot"], name="diagnostics_evaluation_once"),
            models.CheckConstraint(
                condition=models.Q(verdict__in=values_of(states.Said)),
                name="diagnostics_evaluation_verdict_known",
            ),
        ]
        indexes = [
            # Read by the purge, oldest first.
            models.Index(fields=["slot"], name="diagnostics_evaluation_age"),
        ]

    def __str__(self) -> str:
        return f"{self.slot:%Y-%m-%d %H:%M} {self.verdict} {self.k}/{self.n}"


class AlertSlot(models.Model):
    """One minute of one project was evaluated: by whoever inserted this row (C10)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    slot = models.DateTimeField()
    at = models.DateTimeField()
    slices = models.PositiveIntegerField(default=0)
    duration_ms = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "diagnostics_alertslot"
        constraints = [
            # Read by the evaluator: the last minute of a project.
            models.UniqueConstraint(fields=["project", "slot"], name="diagnostics_alertslot_once"),
        ]
        indexes = [
            # Read by the purge, oldest first.
            models.Index(fields=["slot"], name="diagnostics_alertslot_age"),
        ]

    def __str__(self) -> str:
        return f"{self.slot:%Y-%m-%d %H:%M}"
