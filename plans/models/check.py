"""One completion check of a loop: asked under a fresh id, and what it decided."""

from django.db import models
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.store.choices import choices_of, values_of
from failsoft.completion import verdicts
from plans.models.run import Run


class CompletionCheck(models.Model):
    """A check of one iteration; the row exists before the checker is asked.

    A check whose worker died stays as `interrupted` and is asked again under another
    id, so that nothing its checker left behind can decide. All text is redacted.
    """

    class State(models.TextChoices):
        """How far the check has come."""

        RUNNING = "running"
        DECIDED = "decided"
        INTERRUPTED = "interrupted"
        # The checker crashed: only this fails the loop at once.
        FAILED = "failed"

    class Kind(models.TextChoices):
        """Who checks."""

        TOOL = "tool"
        MODEL = "model"
        COMMAND = "command"

    Decision = verdicts.CheckDecision

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    # Whose loop it is, such as `goal:<id>`: named as in the working store.
    owner = models.CharField(max_length=80)
    correlation_id = models.CharField(max_length=200)
    run = models.ForeignKey(Run, models.SET_NULL, related_name="+", null=True, blank=True)
    cycle = models.PositiveIntegerField()
    # Which decided check of its loop this is, from 1.
    iteration = models.PositiveIntegerField()
    # How often this iteration has been checked; above 1 after an interruption.
    number = models.PositiveIntegerField(default=1)
    check_id = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=8, choices=Kind)
    # The tool, the command or the model that was asked.
    checker = models.CharField(max_length=300, blank=True, default="")
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    decision = models.CharField(
        max_length=12, choices=choices_of(verdicts.CheckDecision), null=True, blank=True
    )
    source = models.CharField(
        max_length=12,
        choices=choices_of(verdicts.DecisionSource),
        default=verdicts.DecisionSource.NONE,
    )
    # Null when there was no id to compare.
    check_id_match = models.BooleanField(null=True, blank=True)
    # Why it is undecidable, was refused or failed: a code, then what it concerns.
    reason = models.TextField(null=True, blank=True)
    # The checker's own.
    reasons = models.JSONField(default=list, blank=True)
    fingerprints = models.JSONField(default=list, blank=True)
    # Consecutive undecidable checks up to and with this one.
    undecidable_in_a_row = models.PositiveIntegerField(default=0)
    # Consecutive incomplete checks with these very fingerprints, this one included.
    same_in_a_row = models.PositiveIntegerField(default=0)
    stalled = models.BooleanField(default=False)
    # What the checker wrote, cut.
    preview = models.TextField(blank=True, default="")
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["owner", "pk"]
        indexes = [
            # Read by the loop, and by the page of its goal.
            models.Index(fields=["project", "owner", "id"], name="plans_check_of_loop"),
        ]
        constraints = [
            # An iteration is decided once, whatever is delivered twice.
            models.UniqueConstraint(
                fields=["project", "owner", "iteration"],
                condition=models.Q(state__in=["running", "decided", "failed"]),
                name="plans_check_of_iteration_once",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["running", "decided", "interrupted", "failed"]),
                name="plans_check_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=["tool", "model", "command"]),
                name="plans_check_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(source__in=values_of(verdicts.DecisionSource)),
                name="plans_check_source_known",
            ),
            models.CheckConstraint(
                condition=models.Q(state="decided", decision__isnull=False)
                | (~models.Q(state="decided") & models.Q(decision__isnull=True)),
                name="plans_check_decided_has_decision",
            ),
            models.CheckConstraint(
                condition=models.Q(decision__isnull=True)
                | models.Q(decision__in=values_of(verdicts.CheckDecision)),
                name="plans_check_decision_known",
            ),
        ]

    def __str__(self) -> str:
        return f"check {self.iteration} of {self.owner}"
