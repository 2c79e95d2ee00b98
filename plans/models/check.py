"""The row of one completion check of a loop, and its decision."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.constraints import NamedRow, check, choices_of, index, known, unique
from failsoft.completion import verdicts
from plans.models.run import Run


class CompletionCheck(NamedRow):
    """A check of one iteration; the row exists before the checker is called.

    A check whose worker died stays `interrupted` and is repeated under a new id, so
    that a late answer of the first checker cannot decide. All text is redacted.
    """

    named = "check {0.iteration} of {0.owner}"

    class State(models.TextChoices):
        RUNNING = "running"
        DECIDED = "decided"
        INTERRUPTED = "interrupted"
        # The checker crashed: only this fails the loop immediately.
        FAILED = "failed"

    class Kind(models.TextChoices):
        TOOL = "tool"
        MODEL = "model"
        COMMAND = "command"

    Decision = verdicts.CheckDecision

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    # The owner of the loop, such as `goal:<id>`, as in the working store.
    owner = models.CharField(max_length=80)
    correlation_id = models.CharField(max_length=200)
    run = models.ForeignKey(Run, models.SET_NULL, related_name="+", null=True, blank=True)
    cycle = models.PositiveIntegerField()
    # The ordinal of this decided check in its loop, from 1.
    iteration = models.PositiveIntegerField()
    # The try of this iteration, from 1; above 1 after an interruption.
    number = models.PositiveIntegerField(default=1)
    check_id = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=8, choices=Kind)
    # The name of the tool, command or model.
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
    # Why the check is undecidable, was refused or failed: a code, then its subject.
    reason = models.TextField(null=True, blank=True)
    # As the checker wrote them.
    reasons = models.JSONField(default=list, blank=True)
    fingerprints = models.JSONField(default=list, blank=True)
    # Consecutive undecidable checks, this one included.
    undecidable_in_a_row = models.PositiveIntegerField(default=0)
    # Consecutive incomplete checks with equal fingerprints, this one included.
    same_in_a_row = models.PositiveIntegerField(default=0)
    stalled = models.BooleanField(default=False)
    # The output of the checker, truncated.
    preview = models.TextField(blank=True, default="")
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["owner", "pk"]
        indexes = [
            # Read by the loop, and by the page of its goal.
            index("plans_check_of_loop", "project owner id")
        ]
        constraints = [
            # An iteration is decided once, even when its message is delivered twice.
            unique(
                "plans_check_of_iteration_once",
                "project owner iteration",
                Q(state__in=["running", "decided", "failed"]),
            ),
            known("plans_check_state_known", "state", "running decided interrupted failed"),
            known("plans_check_kind_known", "kind", "tool model command"),
            known("plans_check_source_known", "source", verdicts.DecisionSource),
            check(
                "plans_check_decided_has_decision",
                Q(state="decided", decision__isnull=False)
                | (~Q(state="decided") & Q(decision__isnull=True)),
            ),
            known("plans_check_decision_known", "decision", verdicts.CheckDecision, or_null=True),
        ]
