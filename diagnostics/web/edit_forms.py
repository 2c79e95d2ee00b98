"""What forms share: saving over another's change is said first, and times are typed as local.

The browser names the zone of its reader.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any
from zoneinfo import ZoneInfo

from django import forms

from diagnostics import clock
from diagnostics.accounts.profiles import is_zone
from diagnostics.selection.fields import read_moment


class EditForm(forms.BaseForm):
    """A form whose page carries a digest of what is stored, compared when it comes back.

    A form without the digest, as a program may send it, is saved as it is.
    """

    instance: Any = None
    optional: Sequence[str] = ()
    """Fields that are folded away while they say what is usual."""
    usual: Collection[object] = (None, "", False)

    @property
    def is_optional_set(self) -> bool:
        """Whether a field that is folded away says other than usual, or is wrong."""
        return any(
            self[name].value() not in self.usual or name in self.errors for name in self.optional
        )

    @property
    def opened_as(self) -> str:
        """Return a digest of what is stored, whatever was typed over it; none of what is new."""
        if self.instance is None or self.instance.pk is None:
            return ""
        stored = [(name, self.get_initial_for_field(f, name)) for name, f in self.fields.items()]
        return blake2b(str(stored).encode(), digest_size=12).hexdigest()

    def clean(self) -> dict[str, Any]:
        """Refuse once what was opened before another change; say what saving would replace."""
        before = self.data.get("opened_as")
        if before and before != self.opened_as and self.changed_data:
            names = ", ".join(str(self[name].label) for name in self.changed_data)
            words = "This was changed elsewhere since you opened it."
            self.add_error(None, f"{words} Saving again replaces: {names}.")
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        return cleaned


class LocalTimeField(forms.CharField):
    """A local date and time; empty is now."""

    def __init__(self, **more: Any) -> None:
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
