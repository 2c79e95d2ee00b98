"""Ratings of verdicts: right or wrong, and how often they were right."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.signing import BadSignature, Signer
from django.db import models, transaction
from django.db.models import Count, Q
from django.db.models.functions import Now

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.analysis.statistics import LEAST_TRIALS, Chance, chance_of
from diagnostics.constraints import person, unique
from diagnostics.verdict.verdicts import StoredVerdict


class VerdictMark(models.Model):
    """A rating of a verdict; the verdict is stored as it was shown."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="verdict_marks", db_index=False
    )
    cause = models.TextField()
    cause_value = models.TextField(blank=True, default="")
    since = models.DateTimeField()
    is_right = models.BooleanField()
    # In the wire format, as it was when it was marked.
    verdict = models.JSONField()
    by = person()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # A degradation has one mark, the latest. Read by every verdict.
            unique("diagnostics_verdictmark_once", "project cause cause_value since")
        ]

    def __str__(self) -> str:
        return f"{self.cause} {self.cause_value}".strip()


SAME = timedelta(hours=2)
"""The onset of one degradation moves a little as more calls are counted."""
JUDGED_SPAN = timedelta(days=90)
"""How far back rated verdicts and alarms are counted."""
OUTDATED = "Not rated: the page was out of date."


@dataclass(frozen=True, slots=True)
class JudgedShare:
    """How many verdicts or alarms were rated, and how many of them one way."""

    total: int
    count: int

    @property
    def has_enough(self) -> bool:
        """Whether enough were rated for a share to mean something."""
        return self.total >= LEAST_TRIALS

    @property
    def chance(self) -> Chance | None:
        """The share with its 95 % interval; None if none were rated."""
        return chance_of(self.count, self.total) if self.total else None


def right_share(project_id: int | None, now: datetime) -> JudgedShare:
    """Return the share of right verdicts in the last 90 days; None for all projects."""
    marks = VerdictMark.objects.filter(at__gte=now - JUDGED_SPAN)
    if project_id is not None:
        marks = marks.filter(project_id=project_id)
    totals = marks.aggregate(total=Count("pk"), count=Count("pk", filter=Q(is_right=True)))
    return JudgedShare(**totals)


def mark_of(project_id: int, verdict: StoredVerdict) -> bool | None:
    """Return whether a stored verdict was marked right; None if it was not marked."""
    marks = VerdictMark.objects.filter(_same(verdict), project_id=project_id)
    return marks.order_by("-is_right").values_list("is_right", flat=True).first()


def sign_verdict(project_id: int, verdict: StoredVerdict) -> str:
    """Return a stored verdict as a form holds it: the page may show another one meanwhile."""
    return _signer(project_id).sign_object(verdict.as_json(), compress=True)


def _signer(project_id: int) -> Signer:
    return Signer(salt=f"failsoft.verdict.{project_id}")


@transaction.atomic
def mark_verdict(project_id: int, form: Mapping[str, str], by: User) -> bool:
    """Store a user's rating of the verdict that a form holds; the latest one counts.

    Return False if it holds none of the project, or one that names no degradation.
    """
    try:
        stored = _signer(project_id).unsign_object(form.get("verdict", ""))
    except BadSignature:
        return False
    verdict = StoredVerdict.model_validate(stored)
    if verdict.since is None:
        return False
    is_right = form.get("said") == "right"
    rows = VerdictMark.objects.filter(_same(verdict), project_id=project_id)
    known = rows.order_by("-at").first()
    VerdictMark.objects.update_or_create(
        project_id=project_id,
        since=known.since if known else verdict.since,
        **_cause_of(verdict),
        defaults={"is_right": is_right, "verdict": verdict.wire, "by": by},
    )
    label = "right" if is_right else "wrong"
    note(project_id, by, "verdict.marked", verdict.told.text if verdict.told else "", {"as": label})
    return True


def _same(verdict: StoredVerdict) -> Q:
    if verdict.since is None:
        return Q(pk__in=[])
    return Q(**_cause_of(verdict), since__range=(verdict.since - SAME, verdict.since + SAME))


def _cause_of(verdict: StoredVerdict) -> dict[str, Any]:
    return {"cause": str(verdict.cause), "cause_value": verdict.cause_value or ""}
