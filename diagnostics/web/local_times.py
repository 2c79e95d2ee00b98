"""Times typed in forms: local ones of the reader's zone, which the browser names."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms

from diagnostics import clock
from diagnostics.accounts.profiles import is_zone
from diagnostics.selection.ranges import read_moment


class LocalTimeField(forms.CharField):
    """A local date and time; empty is now."""

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - Django's
        widget = forms.DateTimeInput(attrs={"type": "datetime-local"})
        super().__init__(required=False, help_text="Empty: now.", widget=widget, **more)


class OwnZoneField(forms.CharField):
    def __init__(self) -> None:
        """Hide it: the console fills it in."""
        widget = forms.HiddenInput(attrs={"data-own-zone": True})
        super().__init__(required=False, widget=widget, max_length=64)


class ZoneField(forms.CharField):
    """A zone of the IANA database."""

    def clean(self, value: Any) -> str:  # noqa: ANN401 - Django's
        zone = str(super().clean(value))
        if not is_zone(zone):
            raise forms.ValidationError("Enter a time zone such as Europe/Berlin.")
        return zone


def read_local_time(text: str, zone: str) -> datetime:
    """Return a local time of a zone, in UTC; empty is now. ValueError for anything else."""
    if not text:
        return clock.now()
    return read_moment(text, ZoneInfo(zone if is_zone(zone) and zone else "UTC"))
