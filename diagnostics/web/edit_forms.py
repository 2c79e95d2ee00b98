"""Forms of what several people edit: saving over another's change is said first."""

from hashlib import blake2b
from typing import Any

from django import forms


class EditForm(forms.BaseForm):
    """A form whose page carries a digest of what is stored, compared when it comes back.

    A form without the digest, as a program may send it, is saved as it is.
    """

    instance: Any = None

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
