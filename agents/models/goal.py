"""A goal: what was asked, how far its cycle has come, and how it ended."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from agents.core import outcomes, task_state
from agents.models.provider import LanguageModel
from diagnostics.core.choices import choices_of, values_of
from diagnostics.models import Project
from plans.models import Run


class Goal(models.Model):
    """One goal run, found by its correlation id.

    Text shown is redacted; the goal as asked lies in the working store under
    `goal:<id>` (X-17).
    """

    class Mode(models.TextChoices):
        """What the planner is asked for."""

        PLAN = "plan"
        NEXT_STEP = "next_step"
        ACTIONS = "actions"

    Status = task_state.Status
    Outcome = outcomes.Outcome
    Phase = task_state.Phase

    id = models.UUIDField(primary_key=True, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="goals")
    correlation_id = models.CharField(max_length=200)
    mode = models.CharField(max_length=16, choices=Mode, default=Mode.PLAN)
    text_preview = models.TextField()
    status = models.CharField(max_length=16, choices=choices_of(Status), default=Status.QUEUED)
    outcome = models.CharField(max_length=20, choices=choices_of(Outcome), null=True, blank=True)
    # `planner`, `stub` once a stub stood in for it, `given` when it came with the goal.
    plan_source = models.CharField(max_length=16, default="planner")
    pdca_phase = models.CharField(max_length=8, choices=choices_of(Phase), default=Phase.PLAN)
    cycle = models.PositiveIntegerField(default=1)
    max_iterations = models.PositiveIntegerField(default=3)
    # Null for a goal that brings its plan and asks no model.
    language_model = models.ForeignKey(
        LanguageModel, models.PROTECT, related_name="+", null=True, blank=True
    )
    runner = models.CharField(max_length=16, default=Run.Runner.INLINE)
    tools = ArrayField(models.TextField(), null=True, blank=True)
    # The tools of mode actions; null in every other mode.
    toolset = models.CharField(max_length=64, null=True, blank=True)
    # How its completion is checked, redacted (s3); null: by what its planner or run says.
    completion_check = models.JSONField(null=True, blank=True)
    constraints = models.JSONField(default=list, blank=True)
    retry = models.JSONField(default=dict, blank=True)
    budget = models.JSONField(default=dict, blank=True)
    environment = models.CharField(max_length=100, null=True, blank=True)
    source = models.CharField(max_length=100, null=True, blank=True)
    # The state contract of S0-13 to S0-21.
    last_validation_error = models.JSONField(null=True, blank=True)
    execution_eval = models.JSONField(null=True, blank=True)
    next_user_question = models.TextField(null=True, blank=True)
    # What the person is told at the end, and the statements beside it.
    user_text = models.TextField(blank=True, default="")
    help = models.JSONField(default=list, blank=True)
    current_run = models.ForeignKey(Run, models.SET_NULL, related_name="+", null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    fencing_token = models.BigIntegerField(default=0)
    starts = models.PositiveIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    # SHA-256 in hexadecimal of project and Idempotency-Key: a key may hold anything.
    idempotency_digest = models.CharField(max_length=64, null=True, blank=True)
    request_hash = models.BinaryField(max_length=32, null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "correlation_id"],
                name="agents_goal_correlation_id_once",
            ),
            models.UniqueConstraint(
                fields=["project", "idempotency_digest"],
                condition=models.Q(idempotency_digest__isnull=False),
                name="agents_goal_idempotency_key_once",
            ),
            models.CheckConstraint(
                condition=models.Q(mode__in=["plan", "next_step", "actions"]),
                name="agents_goal_mode_known",
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=values_of(task_state.Status)),
                name="agents_goal_status_known",
            ),
            models.CheckConstraint(
                condition=models.Q(pdca_phase__in=values_of(task_state.Phase)),
                name="agents_goal_phase_known",
            ),
            models.CheckConstraint(
                condition=models.Q(outcome__isnull=True)
                | models.Q(outcome__in=values_of(outcomes.Outcome)),
                name="agents_goal_outcome_known",
            ),
            # A failed goal never leaves a question behind (S0-21).
            models.CheckConstraint(
                condition=~models.Q(status="failed", next_user_question__isnull=False),
                name="agents_goal_failed_asks_nothing",
            ),
        ]
        indexes = [
            # Read by the goals list, newest first (UUIDv7 ids carry the time).
            models.Index(fields=["project", "-id"], name="agents_goal_newest"),
            # Read by the goals list under a status filter.
            models.Index(fields=["project", "status", "-id"], name="agents_goal_by_status"),
            # Read by the reconciler.
            models.Index(
                fields=["lease_until"],
                condition=models.Q(status__in=["queued", "running"]),
                name="agents_goal_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return self.correlation_id

    @property
    def planner_model(self) -> LanguageModel:
        """The model that plans; a goal that brings its plan has none and asks none."""
        if self.language_model is None:
            raise ValueError("a goal that brings its plan asks no model")
        return self.language_model
