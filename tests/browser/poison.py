"""Hostile text in every field of every row that a project has."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from django.apps import apps
from django.db import DataError, IntegrityError, InternalError, models, transaction
from pydantic import JsonValue

APPS = ("agents", "plans", "diagnostics")
MOST_ROWS = 80
TEXTS = (models.CharField, models.TextField)
# What the product writes itself and reads again: a place, a time, a digest, a query.
OWN_WORDS = frozenset(
    {
        "zone", "key", "key_id", "slug", "query", "owner", "task", "queue", "token",
        "contract_version", "release", "credential", "base_url", "payload", "detector_state",
        "parameters", "document", "hash", "previous", "theme", "group_by", "filter",
    }
)  # fmt: skip
# Names of our own enums, written by code alone.
OWN_NAMES = frozenset(
    f"agents.fixpattern.{name}" for name in ("schema", "error_class", "before", "after")
)


def poison(payloads: Sequence[str]) -> int:
    """Write a payload into every text there is, each row another; how many were taken.

    A field that refuses (a choice, a constraint, a length) keeps what it has.
    """
    number = count()
    return sum(
        _poison_row(model, row, payloads[next(number) % len(payloads)])
        for model in _models()
        for row in model._default_manager.all()[:MOST_ROWS]
    )


def _models() -> Iterator[type[models.Model]]:
    for app in APPS:
        for model in apps.get_app_config(app).get_models():
            if model._meta.managed:
                yield model


def _poison_row(model: type[models.Model], row: models.Model, text: str) -> int:
    taken = 0
    for field in model._meta.concrete_fields:
        found = _poisoned(field, getattr(row, field.attname), text)
        if found is not None:
            taken += _write(model, row.pk, field.attname, found)
    return taken


def _poisoned(field: Any, value: Any, text: str) -> Any:
    if field.primary_key or field.name in OWN_WORDS or field.choices:
        return None
    if f"{field.model._meta.label_lower}.{field.name}" in OWN_NAMES:
        return None
    if isinstance(field, models.JSONField):
        return _poisoned_json(value, text)
    if isinstance(field, TEXTS) and value and not field.is_relation:
        return text[: field.max_length or len(text)]
    return None


def _poisoned_json(value: JsonValue, text: str) -> JsonValue:
    if isinstance(value, dict):
        return {key: _poisoned_json(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_poisoned_json(item, text) for item in value]
    return text if isinstance(value, str) else value


def _write(model: type[models.Model], pk: Any, column: str, value: Any) -> bool:
    try:
        with transaction.atomic():
            model._default_manager.filter(pk=pk).update(**{column: value})
    except (DataError, IntegrityError, InternalError):
        return False
    return True
