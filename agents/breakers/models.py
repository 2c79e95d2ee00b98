"""Circuit breakers, and every change of their state."""

from collections.abc import Mapping

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from agents.badges import Badge
from diagnostics.accounts.models import Project
from diagnostics.constraints import NamedRow, check, choices_of, known, unique
from diagnostics.redaction.fields import RedactedCharField
from failsoft.retry import breaker

DENY = "deny"
"""The policy that admits no attempt while the breaker of quality is open."""
BADGES: Mapping[str, Badge] = {
    "closed": ("good", "Closed"),
    "open": ("bad", "Open"),
    "half_open": ("warn", "Half-open"),
    "isolated": ("bad", "Isolated"),
}
CAUSES: Mapping[str | None, str] = {
    "faults_in_a_row": "consecutive faults",
    "fault_rate": "fault rate",
    "cooled_down": "cool-down over",
    "probe_failed": "probe failed",
    "probes_succeeded": "two probes succeeded",
    "by_hand": "manually",
}
WATCHED: Mapping[str, str] = {
    "transport": "calls without an answer",
    "quality": "goals without a valid answer",
}
NO_CALLS = "No calls."
MEANINGS: Mapping[tuple[str, str], str] = {
    ("transport", "closed"): "All calls pass.",
    ("transport", "open"): f"{NO_CALLS} One probe after the cool-down.",
    ("transport", "half_open"): "One probe at a time; two successes close it.",
    ("transport", "isolated"): f"{NO_CALLS} Close it to resume.",
    ("quality", "closed"): "Goals retry as configured.",
    ("quality", "half_open"): "One goal at a time retries, as a probe.",
    ("quality", "isolated"): "No retries. Close it to resume.",
    ("quality", "open"): "One attempt per goal. One goal retries after the cool-down.",
}
STATES = choices_of(breaker.BreakerState)


class Breaker(NamedRow):
    """A circuit breaker of a model's operation; `failsoft.retry.breaker` has its rules."""

    named = "{0.kind} of {0.operation} at {0.provider} {0.model}"
    Kind = breaker.BreakerKind
    State = breaker.BreakerState

    project = models.ForeignKey(Project, models.CASCADE, related_name="breakers")
    provider = models.CharField(max_length=100)
    model = models.CharField(max_length=200)
    # The node that calls: next_step, plan, actions.
    operation = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, choices=choices_of(Kind))
    state = models.CharField(max_length=16, choices=STATES, default=State.CLOSED)
    # Why it is in this state; null until its first change.
    cause = models.CharField(max_length=32, null=True, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    faults_in_row = models.PositiveIntegerField(default=0)
    # The last minute: [second, calls, faults] for each second with a call.
    window = models.JSONField(default=list, blank=True)
    trips = models.PositiveIntegerField(default=0)
    good_probes = models.PositiveIntegerField(default=0)
    open_until = models.DateTimeField(null=True, blank=True)
    # Incremented by every probe; only the newest probe counts, while its lease lasts.
    probe_token = models.PositiveBigIntegerField(default=0)
    probe_until = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["project", "provider", "model", "operation", "kind"]
        constraints = [
            unique("agents_breaker_one_each", "project provider model operation kind"),
            known("agents_breaker_kind_known", "kind", breaker.BreakerKind),
            known("agents_breaker_state_known", "state", breaker.BreakerState),
            check(
                "agents_breaker_cools_down_when_open",
                Q(state="open", open_until__isnull=False)
                | (~Q(state="open") & Q(open_until__isnull=True)),
            ),
            check(
                "agents_breaker_probes_when_half_open",
                Q(probe_until__isnull=True) | Q(state="half_open"),
            ),
        ]

    @property
    def badge(self) -> Badge:
        return BADGES[self.state]

    @property
    def watches(self) -> str:
        return WATCHED[self.kind]

    @property
    def meaning(self) -> str:
        denies = settings.FAILSOFT_BREAKER_POLICY == DENY
        if self.kind == "quality" and denies and self.state in ("open", "isolated"):
            return NO_CALLS
        return MEANINGS[self.kind, self.state]

    @property
    def cause_words(self) -> str:
        return CAUSES.get(self.cause, "")

    @property
    def is_closed(self) -> bool:
        return self.state == "closed"

    @property
    def is_isolated(self) -> bool:
        return self.state == "isolated"


class BreakerTransition(NamedRow):
    """A change of a breaker's state; written once, in the same transaction."""

    named = "{0.from_state} to {0.to_state}"
    breaker = models.ForeignKey(Breaker, models.CASCADE, related_name="transitions")
    from_state = models.CharField(max_length=16, choices=STATES)
    to_state = models.CharField(max_length=16, choices=STATES)
    at = models.DateTimeField()
    cause = models.CharField(max_length=32)
    # Who changed it manually; empty if it changed automatically.
    actor = models.CharField(max_length=200, blank=True, default="")
    # Their reason, redacted.
    reason = RedactedCharField(max_length=500, blank=True, default="")
    epoch = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            known(
                "agents_breakertransition_states_known", "from_state to_state", breaker.BreakerState
            ),
            check("agents_breakertransition_changes_state", ~Q(from_state=F("to_state"))),
        ]

    @property
    def before(self) -> Badge:
        return BADGES[self.from_state]

    @property
    def after(self) -> Badge:
        return BADGES[self.to_state]

    @property
    def cause_words(self) -> str:
        return CAUSES.get(self.cause, "")
