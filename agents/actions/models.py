"""Entries (notes, todos and the like), which the toolset `entries` creates and changes."""

from typing import ClassVar, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce, Now

from diagnostics.accounts.models import Project
from diagnostics.constraints import check, choices_of, index, known
from failsoft.actions.entries import CADENCES, CATEGORIES, STATUSES


class EntryQuerySet(models.QuerySet["Entry"]):
    def of(self, project_id: int) -> Self:
        return self.filter(project_id=project_id)

    def open(self) -> Self:
        """Those that are not done, including snoozed ones."""
        return self.filter(status__in=[Entry.Status.ACTIVE, Entry.Status.SNOOZED])

    def by_importance(self) -> Self:
        importance = Coalesce("priority", Entry.AFTER_EVERY_PRIORITY)
        ordered = self.annotate(importance=importance)
        return ordered.order_by("importance", "created_at", "id")

    def after(self, entry: "Entry") -> Self:
        """Those that come after an entry by importance."""
        importance = entry.priority or Entry.AFTER_EVERY_PRIORITY
        same, at = Q(importance=importance), entry.created_at
        return self.filter(
            Q(importance__gt=importance)
            | same & Q(created_at__gt=at)
            | same & Q(created_at=at, id__gt=entry.pk)
        )


class Entry(models.Model):
    """One entry of a project.

    Its text is redacted before it is stored, like all text
    that is shown.
    """

    AFTER_EVERY_PRIORITY: ClassVar[int] = 6

    class Status(models.TextChoices):
        ACTIVE = "active"
        SNOOZED = "snoozed"
        COMPLETED = "completed"
        ARCHIVED = "archived"

    # Random hexadecimal digits: a few of them identify an entry.
    id = models.CharField(primary_key=True, max_length=32, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="entries")
    content = models.TextField()
    summary = models.TextField(null=True, blank=True)
    source_text = models.TextField(null=True, blank=True)
    category = models.CharField(max_length=16, choices=choices_of(CATEGORIES), default="note")
    # 1 is the most important, 5 the least.
    priority = models.PositiveSmallIntegerField(null=True, blank=True)
    # As it was written, and its time if it could be resolved.
    due_text = models.CharField(max_length=200, null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    cadence = models.CharField(max_length=16, choices=choices_of(CADENCES), null=True, blank=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.ACTIVE)
    snooze_until = models.DateTimeField(null=True, blank=True)
    # Counts changes, so that an undo never overwrites a later one.
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = EntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "entries"
        constraints = [
            known("agents_entry_category_known", "category", CATEGORIES),
            known("agents_entry_cadence_known", "cadence", CADENCES, or_null=True),
            known("agents_entry_status_known", "status", STATUSES),
            check(
                "agents_entry_priority_in_range",
                Q(priority__isnull=True) | Q(priority__gte=1, priority__lte=5),
            ),
        ]
        indexes = [
            # Read by the prompt and the list, by importance.
            index("agents_entry_open", "project status priority")
        ]

    def __str__(self) -> str:
        return f"{self.category} {self.id[:8]}"
