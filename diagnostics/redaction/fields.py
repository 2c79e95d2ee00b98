"""Fields of typed texts, masked before they are compared, stored or used."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    Field = models.Field[str, str]
    CharField = models.CharField[str, str]
    TextField = models.TextField[str, str]
else:
    Field, CharField, TextField = models.Field, models.CharField, models.TextField


def _no_redactor(text: str) -> str:
    raise ImproperlyConfigured("a redacted field was used before the apps were ready")


_redact: Callable[[str], str] = _no_redactor


def use_redactor(redact: Callable[[str], str]) -> None:
    """Set the function that masks the fields below; models have no redactor of their own."""
    global _redact
    _redact = redact


def mask_typed(text: str, longest: int | None = None) -> str:
    """Return a typed text masked, then cut to `longest` characters."""
    return _redact(text.replace("\0", ""))[:longest]


class RedactedFormField(forms.CharField):
    """A text field that is masked before validation."""

    def clean(self, value: Any) -> Any:  # noqa: ANN401 - Django's
        """Return the text, checked as it was typed and then masked."""
        text = super().clean(value)
        return mask_typed(text, self.max_length) if isinstance(text, str) else text


class _Redacted(Field):
    """The base of both fields: the row holds the masked text once it is saved."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:  # noqa: ANN401
        """Mask the attribute of the row as well, so that later uses have the masked text."""
        value = super().pre_save(model_instance, add)
        if isinstance(value, str):
            value = mask_typed(value, self.max_length)
            setattr(model_instance, self.attname, value)
        return value

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:  # noqa: ANN401
        """Mask the values of `update()` and `bulk_update()`, which have no row."""
        if isinstance(value, str):
            value = mask_typed(value, self.max_length)
        return super().get_db_prep_save(value, connection)

    def formfield(self, **kwargs: Any) -> Any:  # noqa: ANN401
        """Return a box that masks, so that forms compare what will be stored."""
        return super().formfield(**{"form_class": RedactedFormField, **kwargs})

    def deconstruct(self) -> Any:  # noqa: ANN401
        """Appear as a plain field in migrations, as the column is one."""
        name, _, args, kwargs = super().deconstruct()
        return name, f"django.db.models.{self.plain}", args, kwargs

    plain = ""


class RedactedCharField(_Redacted, CharField):
    plain = "CharField"


class RedactedTextField(_Redacted, TextField):
    plain = "TextField"
