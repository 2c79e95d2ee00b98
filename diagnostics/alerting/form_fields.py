"""Fields that several forms of alerts ask for."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.core.exceptions import ValidationError

from diagnostics.alerting.rules import LONGEST_FILTER, FilterError, check_filter
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret


class ZoneField(forms.CharField):
    """A zone of the IANA database."""

    def clean(self, value: Any) -> str:  # noqa: ANN401 - Django's
        """Refuse any other text."""
        zone = str(super().clean(value))
        if zone not in available_timezones():
            raise ValidationError("A time zone like Europe/Berlin.")
        return zone


class FilterTextField(forms.CharField):
    """Calls, told apart by what a rule could watch by."""

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - Django's
        super().__init__(label="Which calls", required=False, max_length=LONGEST_FILTER, **more)

    def clean(self, value: Any) -> str:  # noqa: ANN401 - Django's
        """Read a filter as rules do, or say why not."""
        try:
            return refuse_secret(check_filter(str(super().clean(value)).removeprefix("?")))
        except (FilterError, SecretTypedError) as error:
            words = str(error)
            raise ValidationError(f"{words[:1].upper()}{words[1:]}.") from error


class LocalTimeField(forms.DateTimeField):
    """A date and a time of a zone that is asked apart."""

    widget = forms.TextInput(attrs={"type": "datetime-local"})
    default_error_messages = {"invalid": "A date and a time."}

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - Django's
        super().__init__(input_formats=["%Y-%m-%dT%H:%M"], **more)
