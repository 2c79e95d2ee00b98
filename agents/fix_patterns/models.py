"""Fix patterns and the policy of a project."""

from dataclasses import dataclass
from datetime import datetime

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from agents.badges import Badge
from agents.fix_patterns import status
from agents.fix_patterns.recoveries import FixChange, FixRule, ValueShape, describe
from diagnostics.accounts.models import Project
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.constraints import NamedRow, check, choices_of, known, unique
from failsoft.events import ParseErrorType
from failsoft.retry.answers import PlannerSchema

BADGES: dict[status.PatternStatus, Badge] = {
    status.PatternStatus.ACTIVE: ("good", "active"),
    status.PatternStatus.WAITING: ("warn", "waiting"),
    status.PatternStatus.LEARNING: ("live", "learning"),
    status.PatternStatus.REJECTED: ("bad", "rejected"),
    status.PatternStatus.EXPIRED: ("quiet", "expired"),
}


@dataclass(frozen=True, slots=True)
class FirstPassShare:
    """The share of runs with a valid first answer, and its 95 % interval; None without runs."""

    good: int
    runs: int

    @property
    def rate(self) -> float | None:
        return self.good / self.runs if self.runs else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval, low and high."""
        return wilson_interval(self.good, self.runs) if self.runs else None


class FixPolicy(NamedRow):
    """The fix-pattern policy of a project; without a row, `auto`."""

    named = "{0.mode} in {0.project}"
    Mode = status.PatternMode

    project = models.OneToOneField(Project, models.CASCADE, related_name="fix_policy")
    mode = models.CharField(max_length=8, choices=choices_of(Mode), default=Mode.AUTO)
    changed_by = models.CharField(max_length=200, blank=True, default="")
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "fix policies"
        constraints = [known("agents_fixpolicy_mode_known", "mode", status.PatternMode)]


class FixPattern(NamedRow):
    """A kind of error and the correction that fixed it; every column is of a closed set.

    No column has model output: pointers contain only keys of our own schemas.
    """

    named = "{0.schema} {0.code} {0.pointer}: {0.change}"

    class Decision(models.TextChoices):
        APPROVED = "approved"
        REJECTED = "rejected"

    project = models.ForeignKey(Project, models.CASCADE, related_name="fix_patterns")
    schema = models.CharField(max_length=64)
    error_class = models.CharField(max_length=32)
    # The violated rule, as our validators call it; `other` for any other code.
    code = models.CharField(max_length=64)
    pointer = models.CharField(max_length=200, blank=True)
    change = models.CharField(max_length=16)
    before = models.CharField(max_length=16)
    after = models.CharField(max_length=16)
    # Distinct runs since it was first seen or last expired.
    successes = models.PositiveIntegerField(default=0)
    last_success_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    decision = models.CharField(max_length=8, choices=Decision, null=True, blank=True, default=None)
    decided_by = models.CharField(max_length=200, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    # Set manually; the next success restarts the count.
    expired_at = models.DateTimeField(null=True, blank=True)
    # First answers of runs that had it in their prompt, or not, for comparison.
    told_runs = models.PositiveIntegerField(default=0)
    told_good = models.PositiveIntegerField(default=0)
    withheld_runs = models.PositiveIntegerField(default=0)
    withheld_good = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-last_success_at", "-id"]
        constraints = [
            unique(
                "agents_fixpattern_once_a_project",
                "project schema error_class code pointer change before after",
            ),
            known(
                "agents_fixpattern_change_known",
                "change",
                "added removed renamed retyped replaced rewritten",
            ),
            # Defence in depth: no blank and no sentence can be stored.
            check(
                "agents_fixpattern_holds_names_only",
                Q(pointer__regex=r"^(/[a-z_*]{1,40}){0,12}$") & Q(code__regex=r"^[a-z_]{1,64}$"),
            ),
            known(
                "agents_fixpattern_decision_known", "decision", "approved rejected", or_null=True
            ),
            check(
                "agents_fixpattern_shares_are_shares",
                Q(told_good__lte=F("told_runs")) & Q(withheld_good__lte=F("withheld_runs")),
            ),
        ]

    # Set by `known_pattern`: they follow from the policy and the time.
    standing: status.PatternStatus
    expires_at: datetime
    needed = status.NEEDED_SUCCESSES

    @property
    def rule(self) -> FixRule:
        return FixRule(
            PlannerSchema(self.schema),
            ParseErrorType(self.error_class),
            self.code,
            self.pointer,
            FixChange(self.change),
            ValueShape(self.before),
            ValueShape(self.after),
        )

    @property
    def says(self) -> str:
        return describe(self.rule)

    @property
    def given(self) -> FirstPassShare:
        """First answers of runs that had it in their prompt."""
        return FirstPassShare(self.told_good, self.told_runs)

    @property
    def withheld(self) -> FirstPassShare:
        """First answers of runs that did not have it, for comparison."""
        return FirstPassShare(self.withheld_good, self.withheld_runs)

    @property
    def badge(self) -> Badge:
        return BADGES[self.standing]

    @property
    def may_be_approved(self) -> bool:
        return self.decision != self.Decision.APPROVED

    @property
    def may_be_rejected(self) -> bool:
        return self.decision != self.Decision.REJECTED

    @property
    def may_expire(self) -> bool:
        return self.standing in (status.PatternStatus.ACTIVE, status.PatternStatus.WAITING)


class FixSuccess(NamedRow):
    """A run that recovered through this correction; each run counts once."""

    named = "{0.pattern_id} in {0.correlation_id}"
    pattern = models.ForeignKey(FixPattern, models.CASCADE, related_name="seen")
    correlation_id = models.CharField(max_length=200)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "fix successes"
        constraints = [unique("agents_fixsuccess_once_a_run", "pattern correlation_id")]
