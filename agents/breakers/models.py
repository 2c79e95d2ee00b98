"""Circuit breakers, and every change of their state."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.constraints import check, known, unique
from diagnostics.redaction.fields import RedactedCharField
from diagnostics.store.choices import choices_of
from failsoft.retry import breaker


class Breaker(models.Model):
    """One breaker of a model's operation; the rules are those of `failsoft.retry.breaker`."""

    Kind = breaker.BreakerKind
    State = breaker.BreakerState

    project = models.ForeignKey(Project, models.CASCADE, related_name="breakers")
    provider = models.CharField(max_length=100)
    model = models.CharField(max_length=200)
    # The node that calls: next_step, plan, actions.
    operation = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, choices=choices_of(Kind))
    state = models.CharField(max_length=16, choices=choices_of(State), default=State.CLOSED)
    # Why it is in this state; null until it first changed.
    cause = models.CharField(max_length=32, null=True, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    faults_in_row = models.PositiveIntegerField(default=0)
    # The last minute: [second, calls, faults] for each second with a call.
    window = models.JSONField(default=list, blank=True)
    trips = models.PositiveIntegerField(default=0)
    good_probes = models.PositiveIntegerField(default=0)
    open_until = models.DateTimeField(null=True, blank=True)
    # Grows with every probe; the probe that holds the newest one counts, while its lease lasts.
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

    def __str__(self) -> str:
        return f"{self.kind} of {self.operation} at {self.provider} {self.model}"


class BreakerTransition(models.Model):
    """One change of a breaker's state; written once, with the change itself."""

    breaker = models.ForeignKey(Breaker, models.CASCADE, related_name="transitions")
    from_state = models.CharField(max_length=16, choices=choices_of(Breaker.State))
    to_state = models.CharField(max_length=16, choices=choices_of(Breaker.State))
    at = models.DateTimeField()
    cause = models.CharField(max_length=32)
    # Who did it by hand; empty when it happened by the rules.
    actor = models.CharField(max_length=200, blank=True, default="")
    # What they gave as their reason, redacted.
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

    def __str__(self) -> str:
        return f"{self.from_state} to {self.to_state}"
