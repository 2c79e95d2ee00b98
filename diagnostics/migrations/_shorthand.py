"""Tables as the first migration of each app writes them; not for later ones.

Several columns of an index or a constraint are one text, with spaces between them.
"""

import re

from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now

from diagnostics.constraints import check, index, known, unique  # noqa: F401 - of migrations

ID = (
    "id",
    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
)
CREATED_AT = ("created_at", models.DateTimeField(db_default=Now(), editable=False))


def table(name, *parts, **options):
    """Return a table of columns, which are pairs of name and field, indexes and constraints."""
    kinds = {"indexes": models.Index, "constraints": models.BaseConstraint}
    for option, kind in kinds.items():
        if rows := [part for part in parts if isinstance(part, kind)]:
            options[option] = rows
    return migrations.CreateModel(name, [part for part in parts if type(part) is tuple], options)


def each(names, field):
    """Return several columns of one kind."""
    return [(name, field.clone()) for name in names.split()]


def composite_key(names):
    """Return the primary key of several columns."""
    options = {"blank": True, "editable": False, "primary_key": True, "serialize": False}
    return "pk", models.CompositePrimaryKey(*names.split(), **options)


def one_of(words, length=16, **more):
    """Return a column of one of `words`, a text; a dict says how each is shown."""
    if not isinstance(words, dict):
        words = {word: re.sub("[-_]", " ", word).title() for word in words.split()}
    return models.CharField(choices=list(words.items()), max_length=length, **more)


def closed(name, words, known_as, or_null=False, **column):
    """Return a column of one of `words` and the check that it is."""
    return (name, one_of(words, **column)), known(known_as, name, words, or_null=or_null)


def foreign(name, to, related_name="+", **more):
    """Return a reference that goes with its row."""
    return name, models.ForeignKey(to, models.CASCADE, related_name=related_name, **more)


def one_to_one(name, to, related_name, primary_key=False):
    return name, models.OneToOneField(
        to,
        models.CASCADE,
        related_name=related_name,
        primary_key=primary_key,
        serialize=not primary_key,
    )


def optional(name, to, related_name="+", **more):
    """Return a reference that outlives its row, as null."""
    return name, models.ForeignKey(
        to, models.SET_NULL, null=True, related_name=related_name, **more
    )


def project(related_name="+", **more):
    return foreign("project", "diagnostics.project", related_name, **more)


def person(name, **more):
    return optional(name, settings.AUTH_USER_MODEL, **more)
