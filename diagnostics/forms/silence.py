"""Forms of silences and maintenance windows; times are of the zone that they name."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.core.exceptions import ValidationError

from diagnostics.core.alerting.quiet import Repeats
from diagnostics.core.alerting.rules import FilterError, check_filter
from diagnostics.core.choices import choices_of
from diagnostics.models import AlertRule
from diagnostics.models.redacted import RedactedFormField
from diagnostics.redaction.redacting import SecretTypedError, refuse_secret

LONGEST = timedelta(days=30)
LOCAL = "%Y-%m-%dT%H:%M"


class SilenceForm(forms.Form):
    """What is kept quiet, for how long, and why."""

    filter = forms.CharField(
        label="Which calls",
        required=False,
        max_length=1000,
        help_text="As in the box of a page (model:m-1 -env:dev) or its address"
        " (provider=acme&model=m-1). Empty: all.",
    )
    rule = forms.ModelChoiceField(AlertRule.objects.none(), required=False, empty_label="all rules")
    hours = forms.IntegerField(label="For hours", min_value=1, max_value=24 * 30, initial=4)
    reason = forms.CharField(label="Why", max_length=200)

    def __init__(self, project_id: int, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
        super().__init__(*args, **kwargs)
        rows = AlertRule.objects.filter(project_id=project_id, archived_at=None)
        chosen = self.fields["rule"]
        assert isinstance(chosen, forms.ModelChoiceField)  # noqa: S101 - it is one
        chosen.queryset = rows.order_by("name")

    def clean_filter(self) -> str:
        """Take what a rule could watch by."""
        return read_filter(str(self.cleaned_data["filter"]))


class MaintenanceForm(forms.Form):
    """Planned work, once or again and again."""

    name = RedactedFormField(max_length=200)
    filter = forms.CharField(
        label="Which calls",
        required=False,
        max_length=1000,
        help_text="model:m-1 -env:dev, or provider=acme&model=m-1. Empty: all.",
    )
    starts_at = forms.CharField(
        label="From", widget=forms.TextInput(attrs={"type": "datetime-local"})
    )
    ends_at = forms.CharField(
        label="Until", widget=forms.TextInput(attrs={"type": "datetime-local"})
    )
    zone = forms.CharField(label="Time zone", max_length=64, initial="UTC")
    repeats = forms.ChoiceField(choices=choices_of(Repeats))

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
        # Beside the form of a silence on one page: ids of its own.
        super().__init__(*args, **{"auto_id": "plan_%s", **kwargs})

    def clean_filter(self) -> str:
        """Take what a rule could watch by."""
        return read_filter(str(self.cleaned_data["filter"]))

    def clean_zone(self) -> str:
        """Take zones of the IANA database only."""
        zone = str(self.cleaned_data["zone"])
        if zone not in available_timezones():
            raise ValidationError("A time zone like Europe/Berlin.")
        return zone

    def clean(self) -> dict[str, Any]:
        """Read the times in their zone; the end comes after the beginning."""
        told: dict[str, Any] = super().clean() or {}
        zone = ZoneInfo(str(told.get("zone") or "UTC"))
        for name in ("starts_at", "ends_at"):
            try:
                at = datetime.strptime(str(told.get(name)), LOCAL).replace(tzinfo=zone)
            except ValueError:
                self.add_error(name, "A date and a time.")
            else:
                told[name] = at
        begin, end = told.get("starts_at"), told.get("ends_at")
        if isinstance(begin, datetime) and isinstance(end, datetime):  # noqa: SIM102 - both are times only inside
            if not begin < end <= begin + LONGEST:
                self.add_error("ends_at", "After the beginning, at most 30 days.")
        return told


def read_filter(text: str) -> str:
    """Read a filter as rules do, or say why not."""
    try:
        return refuse_secret(check_filter(text.removeprefix("?")))
    except (FilterError, SecretTypedError) as error:
        words = str(error)
        raise ValidationError(f"{words[:1].upper()}{words[1:]}.") from error
