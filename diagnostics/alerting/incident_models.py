"""What went wrong together: incidents, their slices, what became of them, and notes."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from functools import cached_property

from django.db import models
from django.db.models import Q

from diagnostics.accounts.models import Project
from diagnostics.alerting.rule_models import (
    AlertRule,
    AlertState,
    Silence,
    active_silences,
    kinds_of,
)
from diagnostics.alerting.rules import terms_of
from diagnostics.alerting.states import Severity
from diagnostics.constraints import NamedRow, check, choices_of, index, known, person, unique
from diagnostics.redaction.fields import RedactedTextField
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import keeps_all
from diagnostics.verdict.verdicts import StoredVerdict

NAMELESS = frozenset({"", "not_enough_data"})
"""Verdicts that name no cause."""


class IncidentState(models.TextChoices):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class IncidentCause(models.TextChoices):
    """What it was in the end, as a person says."""

    PROVIDER = "provider", "the provider"
    MODEL = "model", "the model"
    PROMPT = "prompt", "our prompt"
    SCHEMA = "schema", "our schema"
    DEPLOY = "deploy", "our deploy"
    VALIDATOR = "validator", "our validator"
    FALSE_ALARM = "false_alarm", "nothing: a false alarm"
    RECOVERED = "recovered", "it recovered by itself"
    NEW_USUAL_LEVEL = "new_usual_level", "no recovery: this level has become the usual one"
    OTHER = "other", "something else"


class Incident(NamedRow):
    """Slices that fired together and have one verdict; open until all are resolved."""

    named = "{0.title}"
    State, Cause = IncidentState, IncidentCause

    project = models.ForeignKey(Project, models.CASCADE, related_name="incidents", db_index=False)
    title = models.CharField(max_length=300)
    state = models.CharField(max_length=16, choices=State, default=State.OPEN)
    severity = models.CharField(
        max_length=16, choices=choices_of(Severity), default=Severity.WARNING
    )
    # When the trouble began, and when it was noticed.
    onset = models.DateTimeField()
    fired_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = person()
    # When the last slice was over, or somebody resolved it.
    cleared_at = models.DateTimeField(null=True, blank=True)
    assignee = person()
    # What it was put down to when it fired: slices with the same one join.
    cause = models.CharField(max_length=32, blank=True, default="")
    cause_value = models.TextField(blank=True, default="")
    # As it was said when it fired, and as it is said now.
    verdict = models.JSONField(default=dict)
    verdict_now = models.JSONField(default=dict)
    verdict_at = models.DateTimeField(null=True, blank=True)
    # The affected calls as a query string.
    filter = models.TextField(blank=True, default="")
    tracker_url = models.URLField(max_length=500, blank=True, default="")
    resolution_cause = models.CharField(
        max_length=16, choices=choices_of(Cause), null=True, blank=True
    )
    resolved_by = person()
    # Found in the past by a back-test that was kept: nobody was notified.
    is_backfilled = models.BooleanField(default=False)

    class Meta:
        constraints = [
            known("diagnostics_incident_state_known", "state", IncidentState),
            known("diagnostics_incident_severity_known", "severity", Severity),
            check(
                "diagnostics_incident_cleared_when_resolved",
                Q(state="resolved", cleared_at__isnull=False)
                | (~Q(state="resolved") & Q(cleared_at__isnull=True)),
            ),
            known(
                "diagnostics_incident_cause_known", "resolution_cause", IncidentCause, or_null=True
            ),
        ]
        indexes = [
            # Read by the list of incidents: latest first.
            index("diagnostics_incident_latest", "project -fired_at -id"),
            # Read by the evaluator, the bar of every page and the digest.
            index("diagnostics_incident_open", "project", Q(cleared_at__isnull=True)),
        ]

    @property
    def latest_verdict(self) -> StoredVerdict:
        """The latest verdict that says what degrades; that of the fire until one is known.

        Once the rate is back within its baseline, a verdict no longer says what it was.
        """
        first, last = map(StoredVerdict.model_validate, (self.verdict, self.verdict_now))
        return last if self.verdict_now and (last.names_onset or not first.names_onset) else first

    @cached_property
    def touched_models(self) -> set[tuple[str | None, str]]:
        """The models that its slices name, with their providers."""
        slices = (row.slice for row in self.slices.all())
        return {
            (values.get("provider"), values["model"])
            for values in slices
            if values.get("model") is not None
        }

    @property
    def began(self) -> datetime:
        """The onset: by the verdict, which the sentence says; else by the detector."""
        return self.latest_verdict.since or self.onset

    @property
    def headline(self) -> tuple[Sequence[str | datetime], Sequence[str | datetime]]:
        """What is said of it, and why: in the past tense once it is over."""
        sentence = self.latest_verdict.told
        if sentence is None:
            return [self.title.rstrip(".")], ()
        return (
            sentence.past(self.cleared_at) if self.cleared_at else (sentence.parts, sentence.reason)
        )

    def cause_words(self, zone: tzinfo | None = None) -> str:
        """Return the cause by the latest verdict that names one, if any; UTC without a zone."""
        verdict = self.latest_verdict
        if verdict.cause in NAMELESS:
            verdict = StoredVerdict.model_validate(self.verdict)
        sentence = verdict.told
        if sentence is None:
            return ""
        return sentence.written(zone)[1] if zone else sentence.why

    def is_kept_by(self, terms: Sequence[Term]) -> bool:
        """Whether a slice meets the terms of a selection."""
        slices = self.slices.all()
        return not slices or any(keeps_all(terms, row.slice) for row in slices)

    def is_silenced(self, now: datetime, known: Sequence[Silence] | None = None) -> bool:
        """Whether silences that hold now cover all that it touches.

        `known` are the project's, where they were read already.
        """
        silences = active_silences(self.project_id, now) if known is None else known
        if not silences:
            return False
        named = {term.field for silence in silences for term in terms_of(silence.filter)}
        for row in self.slices.all():
            kinds = kinds_of(row.rule.filter, self.latest_verdict.risen) if "kind" in named else ()
            if not any(silence.mutes(now, row.rule_id, row.slice, kinds) for silence in silences):
                return False
        return True

    @property
    def silenced_rules(self) -> list[AlertRule]:
        """Return the rules that a silence of it is for; none if its filter covers all calls.

        Where its slices name no calls (a silent source, a rule on all calls), and where its rules
        exclude some of the calls that its slices name, its rules alone are silenced.
        """
        rules = {row.rule_id: row.rule for row in self.slices.all()}
        named = _fields_of(self.filter)
        is_whole = any(_fields_of(rule.filter) <= named for rule in rules.values())
        return [] if named and is_whole else list(rules.values())


def _fields_of(text: str) -> set[str]:
    return {term.field for term in terms_of(text)}


class IncidentSlice(NamedRow):
    """A slice of a rule in an incident, from fire to end."""

    named = "{0.slice} since {0.onset:%Y-%m-%d %H:%M}"
    incident = models.ForeignKey(Incident, models.CASCADE, related_name="slices")
    state = models.ForeignKey(AlertState, models.CASCADE, related_name="incidents")
    rule = models.ForeignKey(AlertRule, models.CASCADE, related_name="incident_slices")
    rule_version = models.PositiveIntegerField()
    severity = models.CharField(max_length=16, choices=choices_of(Severity))
    slice = models.JSONField(default=dict)
    onset = models.DateTimeField()
    fired_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)
    # What was found when it fired; value and bound are shares or numbers.
    k = models.BigIntegerField()
    n = models.BigIntegerField()
    value = models.FloatField()
    bound = models.FloatField()
    # The share that was usual before, where the detector knows one.
    baseline = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            unique("diagnostics_incidentslice_one_open", "state", Q(cleared_at__isnull=True)),
            known("diagnostics_incidentslice_severity_known", "severity", Severity),
        ]


class TransitionKind(models.TextChoices):
    FIRED = "fired"
    JOINED = "joined"
    WORSENED = "worsened"
    ACKNOWLEDGED = "acknowledged"
    SLICE_CLEARED = "slice_cleared"
    # All slices are over: the recovery.
    CLEARED = "cleared"
    # A person said that it is over.
    RESOLVED = "resolved"
    # A slice fires again soon after the recovery.
    REOPENED = "reopened"


class Transition(NamedRow):
    """A state change of an incident; written once, in the same transaction."""

    named = "{0.kind} {0.at:%Y-%m-%d %H:%M}"
    Kind = TransitionKind

    incident = models.ForeignKey(
        Incident, models.CASCADE, related_name="transitions", db_index=False
    )
    kind = models.CharField(max_length=16, choices=Kind)
    at = models.DateTimeField()
    # Whose slice it was, where it was one's.
    slice = models.ForeignKey(
        IncidentSlice, models.CASCADE, related_name="+", null=True, blank=True
    )
    by = person()
    severity = models.CharField(max_length=16, choices=choices_of(Severity))
    # A silence covered it: nobody was notified.
    is_silenced = models.BooleanField(default=False)
    # When its notifications were written; null: not yet, or none are wanted.
    processed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Also read by the page of an incident.
            unique("diagnostics_transition_once", "incident kind at slice", nulls_distinct=False),
            unique("diagnostics_transition_fires_once", "incident kind", Q(kind="fired")),
            known("diagnostics_transition_kind_known", "kind", TransitionKind),
            known("diagnostics_transition_severity_known", "severity", Severity),
        ]


class NoteKind(models.TextChoices):
    COMMENT = "comment"
    ASSIGNED = "assigned"
    LINKED = "linked"
    SILENCED = "silenced"


class IncidentNote(NamedRow):
    """A comment by a person in an incident's timeline."""

    named = "{0.kind} {0.at:%Y-%m-%d %H:%M}"
    Kind = NoteKind

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="notes")
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.COMMENT)
    at = models.DateTimeField()
    by = person()
    # Redacted.
    text = RedactedTextField(blank=True, default="")

    class Meta:
        constraints = [known("diagnostics_incidentnote_kind_known", "kind", NoteKind)]
