"""Goals, their attempts, the results of their actions, and planning stops."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.goals import state
from agents.llm.models import LanguageModel
from diagnostics.accounts.models import Project
from diagnostics.constraints import NamedRow, check, choices_of, index, known, person, unique
from diagnostics.redaction.fields import RedactedCharField
from diagnostics.store.leases import UNFINISHED, LeasedRow
from failsoft.events import name_served
from plans.models.run import Run


class Goal(LeasedRow):
    """One goal run, found by its correlation id.

    Text shown is redacted; the goal as submitted is in the working store under
    `goal:<id>`.
    """

    Mode = state.GoalMode
    Status = state.Status
    Outcome = state.PlanningOutcome
    Phase = state.Phase

    id = models.UUIDField(primary_key=True, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="goals")
    correlation_id = models.CharField(max_length=200)
    mode = models.CharField(max_length=16, choices=choices_of(Mode), default=Mode.PLAN)
    text_preview = models.TextField()
    status = models.CharField(max_length=16, choices=choices_of(Status), default=Status.QUEUED)
    outcome = models.CharField(max_length=20, choices=choices_of(Outcome), null=True, blank=True)
    # `planner`, `stub` once a stub replaced it, `given` if it was submitted with the goal.
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
    # How its completion is checked, redacted; null: by what its planner or run says.
    completion_check = models.JSONField(null=True, blank=True)
    constraints = models.JSONField(default=list, blank=True)
    retry = models.JSONField(default=dict, blank=True)
    budget = models.JSONField(default=dict, blank=True)
    environment = models.CharField(max_length=100, null=True, blank=True)
    source = models.CharField(max_length=100, null=True, blank=True)
    # The state contract.
    last_validation_error = models.JSONField(null=True, blank=True)
    execution_eval = models.JSONField(null=True, blank=True)
    next_user_question = models.TextField(null=True, blank=True)
    # The final message to the user, and the help shown beside it.
    user_text = models.TextField(blank=True, default="")
    help = models.JSONField(default=list, blank=True)
    current_run = models.ForeignKey(Run, models.SET_NULL, related_name="+", null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    # SHA-256 in hexadecimal of project and Idempotency-Key: a key may hold anything.
    idempotency_digest = models.CharField(max_length=64, null=True, blank=True)
    request_hash = models.BinaryField(max_length=32, null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            unique("agents_goal_correlation_id_once", "project correlation_id"),
            unique(
                "agents_goal_idempotency_key_once",
                "project idempotency_digest",
                Q(idempotency_digest__isnull=False),
            ),
            known("agents_goal_mode_known", "mode", state.GoalMode),
            known("agents_goal_status_known", "status", state.Status),
            known("agents_goal_phase_known", "pdca_phase", state.Phase),
            known("agents_goal_outcome_known", "outcome", state.PlanningOutcome, or_null=True),
            # A failed goal never leaves a question behind.
            check(
                "agents_goal_failed_asks_nothing",
                ~Q(status="failed", next_user_question__isnull=False),
            ),
        ]
        indexes = [
            # Read by the goals list, newest first (UUIDv7 ids carry the time).
            index("agents_goal_newest", "project -id"),
            # Read by the goals list under a status filter.
            index("agents_goal_by_status", "project status -id"),
            # Read by the reconciler.
            index("agents_goal_unfinished", "lease_until", Q(status__in=[*UNFINISHED])),
        ]

    def __str__(self) -> str:
        return self.correlation_id

    @property
    def planner_model(self) -> LanguageModel:
        if self.language_model is None:
            raise ValueError("a goal that brings its plan asks no model")
        return self.language_model


class Attempt(NamedRow):
    """A model call at one node in one cycle.

    The row exists before the call, so that a crash cannot spend the budget twice;
    events take their id and time from it. All text is redacted.
    """

    named = "{0.node} {0.cycle}.{0.attempt} of {0.goal_id}"
    State = state.AttemptState

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    goal = models.ForeignKey(Goal, models.CASCADE, related_name="attempts")
    node = models.CharField(max_length=64)
    cycle = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=choices_of(State), default=State.CALLING)
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
    # Fix patterns in the prompt, or withheld from it for comparison.
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
    reasoning_tokens = models.PositiveIntegerField(null=True, blank=True)
    # Who answered the call, as far as the provider says.
    served_model = models.CharField(max_length=200, null=True, blank=True)
    upstream = models.CharField(max_length=200, null=True, blank=True)
    system_fingerprint = models.CharField(max_length=200, null=True, blank=True)
    # Transport retries; they are not attempts.
    transport_retries = models.PositiveIntegerField(default=0)
    called_at = models.DateTimeField()
    occurred_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["goal", "cycle", "node", "attempt"]
        constraints = [
            unique("agents_attempt_numbered_once", "goal cycle node attempt"),
            known("agents_attempt_state_known", "state", state.AttemptState),
            check("agents_attempt_counts_from_one", Q(attempt__gte=1)),
        ]

    @property
    def served(self) -> str | None:
        """Who answered, where it is not the requested model."""
        return name_served(self.model, self.served_model, self.upstream)


class PlanningStop(NamedRow):
    """Stops planning in a project while the row exists; without a project, everywhere."""

    named = "stopped since {0.at}"
    project = models.ForeignKey(
        Project, models.CASCADE, related_name="+", null=True, db_index=False
    )
    reason = RedactedCharField(max_length=200, blank=True, default="")
    by = person(blank=False)
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read at every claim; null is the whole installation, and it is one too.
            unique("agents_planningstop_once", "project", nulls_distinct=False)
        ]


class ActionBatch(NamedRow):
    """The actions of a goal, stored in the transaction that applied them, so they apply once.

    All text is redacted. The data for an undo is in the working store under `goal:<id>`.
    """

    named = "{0.toolset} {0.summary}"
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    goal = models.OneToOneField(Goal, models.CASCADE, related_name="action_batch")
    toolset = models.CharField(max_length=64)
    # Flat objects, one for each entry that was applied.
    applied = models.JSONField(default=list, blank=True)
    # Calls that could not be decoded, and entries that could not be applied.
    parse_failures = models.JSONField(default=list, blank=True)
    execution_failures = models.JSONField(default=list, blank=True)
    # In entries: a call that failed counts all it had.
    parse_failed = models.PositiveIntegerField(default=0)
    execution_failed = models.PositiveIntegerField(default=0)
    summary = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    undone_at = models.DateTimeField(null=True, blank=True)
    # Entries that an undo left as they are, because they were changed again since.
    kept = models.JSONField(default=list, blank=True)

    class Meta:
        verbose_name_plural = "action batches"
