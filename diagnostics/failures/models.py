"""Failure groups, one row per kind of failure, and their history."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.constraints import NamedRow, index, known, person, unique
from diagnostics.redaction.fields import RedactedTextField


class GroupState(models.TextChoices):
    """The state of a group; `new` becomes `ongoing` after a day."""

    NEW = "new"
    ONGOING = "ongoing"
    REGRESSED = "regressed"
    RESOLVED = "resolved"
    MUTED = "muted"


class FailureGroup(models.Model):
    """Failures with one fingerprint: a kind of failure, across models.

    Created and counted by the fold. `seen` also counts events whose rows were deleted.
    """

    State = GroupState

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="failure_groups", db_index=False
    )
    fingerprint = models.UUIDField()
    # The version of the fingerprint rule (diagnostics.store.fingerprints.VERSION).
    fingerprint_version = models.PositiveSmallIntegerField()
    node = models.TextField()
    schema = models.TextField(null=True, blank=True)
    kind = models.TextField()
    error_type = models.TextField()
    pointer = models.TextField(blank=True, default="")
    # The class of fault or the tool, redacted and cut.
    detail = models.TextField(blank=True, default="")
    state = models.CharField(max_length=16, choices=GroupState, default=GroupState.NEW)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    seen = models.BigIntegerField()
    # The latest failure, for lists to show without a search.
    last_event_id = models.UUIDField()
    resolved_at = models.DateTimeField(null=True, blank=True)
    # The release with the fix; null: anything after `resolved_at`.
    fixed_in = models.TextField(null=True, blank=True)
    # Releases known when it was resolved: another failure in one of them is no regression.
    releases_before = models.JSONField(default=list, blank=True)
    muted_until = models.DateTimeField(null=True, blank=True)
    muted_until_seen = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            # Read by every fold.
            unique("diagnostics_failuregroup_once", "project fingerprint"),
            known("diagnostics_failuregroup_state_known", "state", GroupState),
        ]
        indexes = [
            # Read by the list of groups: latest first.
            index("diagnostics_group_latest", "project -last_seen -id"),
            # Read by the fold: new groups become ongoing, muted ones are unmuted.
            index("diagnostics_group_waiting", "state", Q(state__in=["new", "muted"])),
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.error_type} {self.pointer}".strip()


class GroupChangeKind(models.TextChoices):
    FOUND = "found"
    RESOLVED = "resolved"
    REOPENED = "reopened"
    REGRESSED = "regressed"
    MUTED = "muted"
    UNMUTED = "unmuted"
    COMMENT = "comment"


class GroupChange(NamedRow):
    """A change of a group's state, or a comment, with its author."""

    named = "{0.kind} #{0.group_id}"
    Kind = GroupChangeKind

    group = models.ForeignKey(FailureGroup, models.CASCADE, related_name="changes")
    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=16, choices=GroupChangeKind)
    # Null: the fold.
    by = person()
    text = RedactedTextField(blank=True, default="")

    class Meta:
        constraints = [known("diagnostics_groupchange_kind_known", "kind", GroupChangeKind)]
