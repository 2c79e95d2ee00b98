"""Rows of alert rules, of how their slices and projects stand, of evaluations, and of silences."""

from collections.abc import Collection, Sequence
from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.alerting.rules import ALLOWED, columns_of, terms_of
from diagnostics.alerting.signals import Signal, Slice
from diagnostics.alerting.states import (
    LONGEST_SECONDS,
    AlertPhase,
    DetectorSignal,
    NoData,
    Severity,
)
from diagnostics.constraints import NamedRow, check, choices_of, index, known, person, unique
from diagnostics.queries.call_counts import kind_filter
from diagnostics.redaction.fields import RedactedCharField, RedactedTextField
from diagnostics.selection.selection import keeps_all


class AlertRule(NamedRow):
    """An alert rule: scope, signal, detector, timing, and whom to notify."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="alert_rules")
    name = RedactedCharField(max_length=200)
    # A query string, as in the address of a page; empty: all calls.
    filter = models.TextField(blank=True, default="")
    # Of environment, node, provider, model: each combination is a slice of its own.
    group_by = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    signal = models.CharField(max_length=32, choices=choices_of(Signal))
    detector = models.CharField(max_length=16, choices=choices_of(ALLOWED))
    # Checked by `diagnostics.alerting.rules` before it is saved.
    parameters = models.JSONField(default=dict, blank=True)
    severity = models.CharField(
        max_length=16, choices=choices_of(Severity), default=Severity.WARNING
    )
    # It must hold for so long before it fires, and be over for so long before it clears.
    for_seconds = models.PositiveIntegerField(default=0)
    clear_seconds = models.PositiveIntegerField(default=0)
    no_data = models.CharField(max_length=8, choices=choices_of(NoData), default=NoData.KEEP)
    no_data_seconds = models.PositiveIntegerField(default=6 * 3600)
    # It does not clear by itself: somebody has to resolve it.
    is_latching = models.BooleanField(default=False)
    # Ids of channels; empty: those of the project.
    routing = models.JSONField(default=list, blank=True)
    # Told again so often while nobody has acknowledged; null: never.
    renotify_seconds = models.PositiveIntegerField(null=True, blank=True)
    # Unacknowledged for so long, it goes to these channels too.
    escalate_seconds = models.PositiveIntegerField(null=True, blank=True)
    escalation = models.JSONField(default=list, blank=True)
    owner = person()
    is_enabled = models.BooleanField(default=True)
    # Which of the rules out of the box it is; null for all others.
    standard = models.CharField(max_length=32, null=True, blank=True)
    # Grows with every change of what is judged; kept with each evaluation.
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())
    # A rule that was deleted: its incidents and evaluations still name it.
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Also read by the evaluator: the rules of a project.
            unique("diagnostics_alertrule_name_once", "project name", Q(archived_at__isnull=True)),
            unique(
                "diagnostics_alertrule_standard_once", "project standard", Q(standard__isnull=False)
            ),
            known("diagnostics_alertrule_signal_known", "signal", Signal),
            known("diagnostics_alertrule_detector_known", "detector", ALLOWED),
            known("diagnostics_alertrule_severity_known", "severity", Severity),
            known("diagnostics_alertrule_no_data_known", "no_data", NoData),
            check(
                "diagnostics_alertrule_group_by_known",
                Q(group_by__contained_by=["environment", "node", "provider", "model"]),
            ),
            check(
                "diagnostics_alertrule_waits_bounded",
                Q(for_seconds__lte=LONGEST_SECONDS, clear_seconds__lte=LONGEST_SECONDS),
            ),
        ]


def live_rules(project_id: int) -> models.QuerySet[AlertRule]:
    """Return the rules of a project that are not deleted, by name."""
    return AlertRule.objects.filter(project_id=project_id, archived_at=None).order_by("name")


class AlertState(NamedRow):
    """The state of one slice of a rule, including the detector's."""

    named = "{0.state}: {0.slice}"
    rule = models.ForeignKey(AlertRule, models.CASCADE, related_name="states")
    # The values of the rule's group_by: {"provider": "acme", "model": "m-1"}.
    slice = models.JSONField(default=dict)
    # md5 of them as canonical JSON: texts may be too long for an index.
    key = models.UUIDField()
    state = models.CharField(max_length=16, choices=choices_of(AlertPhase), default=AlertPhase.OK)
    since = models.DateTimeField()
    # The detector's memory of the last minutes, and of the last days.
    detector_state = models.JSONField(default=dict)
    memory = models.JSONField(default=dict)
    # The rule's version that this memory belongs to.
    rule_version = models.PositiveIntegerField(default=1)
    last_data_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Read by the evaluator.
            unique("diagnostics_alertstate_once", "rule key"),
            known("diagnostics_alertstate_state_known", "state", AlertPhase),
        ]


class Evaluation(NamedRow):
    """The result of one evaluation of one slice; kept for some weeks."""

    named = "{0.slot:%Y-%m-%d %H:%M} {0.verdict} {0.k}/{0.n}"
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
    verdict = models.CharField(max_length=8, choices=choices_of(DetectorSignal))
    # How the slice stood after it.
    state_after = models.CharField(max_length=16, choices=choices_of(AlertPhase))
    # Computed over the past (a back-test that was kept), not at its time.
    is_backfilled = models.BooleanField(default=False)

    class Meta:
        constraints = [
            # Read by strips and charts of a slice: latest first.
            unique("diagnostics_evaluation_once", "state slot"),
            known("diagnostics_evaluation_verdict_known", "verdict", DetectorSignal),
        ]
        indexes = [
            # Read by the purge, oldest first.
            index("diagnostics_evaluation_age", "slot")
        ]


class RuleDay(NamedRow):
    """How often the slices of a rule were evaluated on one day (UTC); kept for 90 days."""

    named = "{0.day}: {0.evaluations}"
    pk = models.CompositePrimaryKey("rule", "day")
    rule = models.ForeignKey(AlertRule, models.CASCADE, related_name="days", db_index=False)
    day = models.DateField()
    evaluations = models.BigIntegerField()


class AlertSlot(NamedRow):
    """An evaluated minute of a project; inserting the row claims the minute."""

    named = "{0.slot:%Y-%m-%d %H:%M}"
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    slot = models.DateTimeField()
    at = models.DateTimeField()
    slices = models.PositiveIntegerField(default=0)
    duration_ms = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            # Read by the evaluator: the last minute of a project.
            unique("diagnostics_alertslot_once", "project slot")
        ]
        indexes = [
            # Read by the purge, oldest first.
            index("diagnostics_alertslot_age", "slot")
        ]


class Silence(models.Model):
    """Suppresses notifications in its scope, never evaluation."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="silences")
    # Of this rule only; null: of all.
    rule = models.ForeignKey(
        AlertRule, models.CASCADE, related_name="silences", null=True, blank=True
    )
    # A query string on environment, node, provider, model, kind; empty: everything.
    filter = models.TextField(blank=True, default="")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = RedactedTextField(blank=True, default="")
    created_by = person()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [check("diagnostics_silence_ends", Q(ends_at__gte=F("starts_at")))]
        indexes = [
            # Read by the evaluator and the list of silences.
            index("diagnostics_silence_now", "project ends_at")
        ]

    def __str__(self) -> str:
        return f"{self.filter or 'everything'} until {self.ends_at:%Y-%m-%d %H:%M}"

    def mutes(self, now: datetime, rule: int, values: Slice, kinds: Collection[str] = ()) -> bool:
        """Whether a slice is quiet now: it has every value that the silence names.

        `kinds` are the kinds of failure that the slice fires for, as filters name them. One
        that the silence does not name keeps the slice loud; so do kinds that are not known.
        """
        if not self.starts_at <= now < self.ends_at or self.rule_id not in (None, rule):
            return False
        terms = terms_of(self.filter)
        of_kind = [term for term in terms if term.field == "kind"]
        others = [term for term in terms if term.field != "kind"]
        if of_kind and not (kinds and all(keeps_all(of_kind, {"kind": kind}) for kind in kinds)):
            return False
        return all(term.field in values for term in others) and keeps_all(others, dict(values))


def active_silences(project_id: int, now: datetime) -> list[Silence]:
    """Return what keeps slices of a project quiet about now."""
    return list(Silence.objects.filter(project_id=project_id, ends_at__gt=now))


def kinds_of(rule_filter: str, risen: Sequence[str]) -> Sequence[str]:
    """Return the kinds of failure that a slice fires for, as filters name them.

    Those that its rule is narrowed to, else those that rose by its verdict.
    """
    own = [term for term in terms_of(rule_filter) if term.field == "kind"]
    columns = columns_of(own) if own else risen
    return [kind_filter(column) for column in columns]


class ProjectStatus(NamedRow):
    """The verdict of a project and the status of each series, as of the last evaluation."""

    named = "{0.at:%Y-%m-%d %H:%M}"
    project = models.OneToOneField(
        Project, models.CASCADE, primary_key=True, related_name="+", serialize=False
    )
    at = models.DateTimeField()
    verdict = models.JSONField()
    series = models.JSONField()
    # Series with calls that are not among the judged ones of a large project.
    left_out = models.IntegerField(default=0, db_default=0)
