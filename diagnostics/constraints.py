"""What rows share: their names, and shorthands for indexes, constraints and columns.

Column names are separated by blanks.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.db.models import (
    CASCADE,
    DO_NOTHING,
    SET_NULL,
    CheckConstraint,
    ForeignKey,
    Index,
    Model,
    Q,
    UniqueConstraint,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    Person = ForeignKey[User | None, User | None]


class NamedRow(Model):
    """A row, which the administration calls as `named` says: a format of the row itself."""

    named: ClassVar[str] = "{0.name}"

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.named.format(self)


class ProjectRow(NamedRow):
    """A row of a project, deleted with it; its indexes begin with the project."""

    project = ForeignKey("diagnostics.Project", CASCADE, related_name="+", db_index=False)

    class Meta:
        abstract = True


class PurgedRow(NamedRow):
    """One of many rows of a project: the database does not look for the project with each."""

    project = ForeignKey(
        "diagnostics.Project", DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )

    class Meta:
        abstract = True


def index(name: str, columns: str, condition: Q | None = None) -> Index:
    """Return an index of the columns, in order; `-` before one is descending."""
    return Index(fields=columns.split(), condition=condition, name=name)


def unique(
    name: str, columns: str, condition: Q | None = None, *, nulls_distinct: bool | None = None
) -> UniqueConstraint:
    """Return a unique constraint of the columns, for the rows that meet a condition."""
    return UniqueConstraint(
        fields=columns.split(), condition=condition, name=name, nulls_distinct=nulls_distinct
    )


def check(name: str, condition: Q) -> CheckConstraint:
    return CheckConstraint(condition=condition, name=name)


def known(
    name: str, columns: str, words: str | Iterable[str], *, or_null: bool = False
) -> CheckConstraint:
    """Return the constraint that each column has one of `words`: a list, or one text."""
    listed = words.split() if isinstance(words, str) else [str(word) for word in words]
    condition = Q(*((f"{column}__in", listed) for column in columns.split()))
    return check(name, Q((f"{columns}__isnull", True)) | condition if or_null else condition)


def choices_of(known: Iterable[str]) -> list[tuple[str, str]]:
    """Return the values of a pure rule as choices, with the labels that Django would make."""
    return [(str(name), name.replace("_", " ").replace("-", " ").title()) for name in known]


def person(*, blank: bool = True) -> "Person":
    """Return a foreign key to a user; null if there is none or the account was deleted."""
    return ForeignKey(settings.AUTH_USER_MODEL, SET_NULL, related_name="+", null=True, blank=blank)
