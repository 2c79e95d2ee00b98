"""Failure groups: one row a kind of failure, and what became of it."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.constraints import index, known, person, unique
from diagnostics.redaction.fields import RedactedTextField


class FailureGroup(models.Model):
    """Failures with one fingerprint: a kind of failure, across models.

    Created and counted by the fold. `seen` also counts events whose rows were deleted.
    """

    class State(models.TextChoices):
        """What is thought of it; `new` becomes `ongoing` after a day."""

        NEW = "new"
        ONGOING = "ongoing"
        REGRESSED = "regressed"
        RESOLVED = "resolved"
        MUTED = "muted"

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="failure_groups", db_index=False
    )
    fingerprint = models.UUIDField()
    # Of the rule that made the fingerprint (diagnostics.store.fingerprints.VERSION).
    fingerprint_version = models.PositiveSmallIntegerField()
    node = models.TextField()
    schema = models.TextField(null=True, blank=True)
    kind = models.TextField()
    error_type = models.TextField()
    pointer = models.TextField(blank=True, default="")
    # The offending value or tool, redacted and cut.
    detail = models.TextField(blank=True, default="")
    state = models.CharField(max_length=16, choices=State, default=State.NEW)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    seen = models.BigIntegerField()
    # The latest failure: what a list shows without looking for a sample.
    last_event_id = models.UUIDField()
    resolved_at = models.DateTimeField(null=True, blank=True)
    # The release that carries the repair; none: whatever comes after `resolved_at`.
    fixed_in = models.TextField(null=True, blank=True)
    # Releases known when it was resolved: seeing it again in one of them is no regression.
    releases_before = models.JSONField(default=list, blank=True)
    muted_until = models.DateTimeField(null=True, blank=True)
    muted_until_seen = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            # Read by every fold.
            unique("diagnostics_failuregroup_once", "project fingerprint"),
            known(
                "diagnostics_failuregroup_state_known",
                "state",
                "new ongoing regressed resolved muted",
            ),
        ]
        indexes = [
            # Read by the list of groups: latest first.
            index("diagnostics_group_latest", "project -last_seen -id"),
            # Read by the fold's upkeep: what is new grows old, what is muted wakes.
            index("diagnostics_group_waiting", "state", Q(state__in=["new", "muted"])),
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.error_type} {self.pointer}".strip()


class GroupChange(models.Model):
    """A change of a group's state, or a comment, with its author."""

    class Kind(models.TextChoices):
        """What happened."""

        FOUND = "found"
        RESOLVED = "resolved"
        REOPENED = "reopened"
        REGRESSED = "regressed"
        MUTED = "muted"
        UNMUTED = "unmuted"
        COMMENT = "comment"

    group = models.ForeignKey(FailureGroup, models.CASCADE, related_name="changes")
    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=16, choices=Kind)
    # Nobody: the fold itself.
    by = person()
    text = RedactedTextField(blank=True, default="")

    class Meta:
        constraints = [
            known(
                "diagnostics_groupchange_kind_known",
                "kind",
                "found resolved reopened regressed muted unmuted comment",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.group_id}"
