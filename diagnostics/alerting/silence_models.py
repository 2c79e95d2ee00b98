"""Silences: what is watched and not told."""

from collections.abc import Collection
from datetime import datetime

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rules import terms_of
from diagnostics.alerting.signals import Slice
from diagnostics.constraints import check, index, person
from diagnostics.redaction.fields import RedactedTextField
from diagnostics.selection.selection import keeps_all


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
