"""The form of a channel: what it is, what it wants to hear, and when it rests."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.text import capfirst

from diagnostics.alerting.channels import split_addresses
from diagnostics.alerting.notification_models import Channel
from diagnostics.alerting.senders.chat_services import ChatAddressError, check_address
from diagnostics.outbound.addresses import ForbiddenAddressError, choose_target
from diagnostics.outbound.credentials import (
    REFERENCE_SCHEMES,
    CredentialError,
    check_reference,
    names_own_setting,
)
from diagnostics.web.local_times import ZoneField

MOST_ADDRESSES = 20
WEEK_MINUTES = 7 * 24 * 60
OPTIONAL = (
    "quiet_from",
    "quiet_to",
    "zone",
    "renotify_minutes",
    "escalate_after_minutes",
    "escalate_to",
    "has_canary",
)
"""Boxes that are folded away while they are empty."""


REFERENCE = "Or env:NAME or file:/run/secrets/NAME, read by the worker."


def _address(label: str, help_text: str) -> forms.CharField:
    box = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    return forms.CharField(
        label=label, required=False, max_length=1000, help_text=help_text, widget=box
    )


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg] # plain at run time
    """Fields of a channel; each kind has an address of its own, since it may be secret."""

    email = _address("Email addresses", "Separated by commas.")
    webhook = _address("Webhook URL", f"An https:// URL. {REFERENCE}")
    chat = _address("Service URL", f"As in Apprise: slack://…, pagerduty://…. {REFERENCE}")

    class Meta:
        model = Channel
        fields = [
            "name",
            "kind",
            "min_severity",
            "quiet_from",
            "quiet_to",
            "zone",
            "digest_above",
            "renotify_minutes",
            "escalate_after_minutes",
            "escalate_to",
            "has_canary",
        ]
        field_classes = {"zone": ZoneField}
        labels = {
            "min_severity": "Minimum severity",
            "quiet_from": "Quiet hours from",
            "quiet_to": "Quiet hours until",
            "zone": "Time zone",
            "digest_above": "Digest above (per hour)",
            "renotify_minutes": "Re-notify every (min)",
            "escalate_after_minutes": "Escalate after (min)",
            "escalate_to": "Escalate to",
            "has_canary": "Daily test message",
        }
        help_texts = {
            "zone": "Of its messages and its quiet hours.",
            "quiet_to": "Alerts are held, and sent afterwards if still active.",
            "renotify_minutes": "Until acknowledged. Empty: never.",
            "escalate_after_minutes": "If not acknowledged. Empty: never.",
        }
        widgets = {
            "quiet_from": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
            "quiet_to": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
        super().__init__(*args, **kwargs)
        others = Channel.objects.filter(project_id=self.instance.project_id)
        chosen, kind = self.fields["escalate_to"], self.fields["kind"]
        assert isinstance(chosen, forms.ModelChoiceField)  # noqa: S101 - it is one
        assert isinstance(kind, forms.ChoiceField)  # noqa: S101 - it is one
        chosen.queryset = others.exclude(pk=self.instance.pk)
        chosen.empty_label = "No escalation"
        kind.choices = [(value, capfirst(label)) for value, label in Channel.Kind.choices]
        kind.initial = Channel.Kind.EMAIL
        if not self.is_bound and not self.instance.pk and self.instance.zone == "UTC":
            self.fields["zone"].widget.attrs["data-own-zone"] = ""
        if self.instance.pk:
            kind.disabled = True
            self._show_address(self.fields[self.instance.kind])

    @property
    def addresses(self) -> list[forms.BoundField]:
        """The boxes of addresses; a channel keeps its kind."""
        kinds = [self.instance.kind] if self.instance.pk else list(Channel.Kind)
        return [self[kind] for kind in kinds]

    @property
    def target(self) -> str:
        """The address that was typed for the kind."""
        kind = self.cleaned_data.get("kind") or self.instance.kind
        return str(self.cleaned_data.get(kind) or "").strip()

    @property
    def is_optional_set(self) -> bool:
        """Whether a field that is folded away says other than usual, or is wrong."""
        usual = (None, "", False, "UTC")
        return any(self[name].value() not in usual or name in self.errors for name in OPTIONAL)

    def _show_address(self, field: forms.Field) -> None:
        is_mail = self.instance.kind == Channel.Kind.EMAIL
        field.initial = self.instance.shown if is_mail or self.instance.credential else ""
        if not is_mail:
            field.help_text = f"{field.help_text} Empty: unchanged."

    def clean_name(self) -> str:
        """Refuse a name that another channel of the project has."""
        name = " ".join(str(self.cleaned_data["name"]).split())
        taken = Channel.objects.filter(project_id=self.instance.project_id, name=name)
        if taken.exclude(pk=self.instance.pk).exists():
            raise ValidationError("A channel with this name exists.")
        return name

    def clean(self) -> dict[str, Any]:
        """Check the address by its kind, and pairs that go together."""
        cleaned: dict[str, Any] = super().clean() or {}
        kind = cleaned.get("kind") or self.instance.kind
        if kind and (self.target or not self.instance.pk or kind == Channel.Kind.EMAIL):
            self._check_target(str(kind), self.target)
        if (cleaned.get("quiet_from") is None) != (cleaned.get("quiet_to") is None):
            self.add_error("quiet_to", "Set both ends of the quiet hours, or none.")
        elif cleaned.get("quiet_from") and cleaned["quiet_from"] == cleaned["quiet_to"]:
            self.add_error("quiet_to", "Choose another time than the beginning.")
        if bool(cleaned.get("escalate_to")) != bool(cleaned.get("escalate_after_minutes")):
            self.add_error("escalate_to", "Set both: after how long, and to which channel.")
        for name in ("renotify_minutes", "escalate_after_minutes"):
            if (cleaned.get(name) or 0) > WEEK_MINUTES:
                self.add_error(name, f"At most a week: {WEEK_MINUTES:,} minutes.")
        return cleaned

    def _check_target(self, kind: str, target: str) -> None:
        try:
            check_target(kind, target)
        except ValidationError as error:
            self.add_error(kind, error)
        except (ChatAddressError, CredentialError, ForbiddenAddressError) as error:
            self.add_error(kind, f"{capfirst(str(error))}.")


def check_target(kind: str, target: str) -> None:
    """Look at the form of an address; where it leads is looked at whenever it is used.

    Raises ValidationError, ChatAddressError, CredentialError or ForbiddenAddressError.
    """
    if kind == Channel.Kind.EMAIL:
        _check_addresses(split_addresses(target))
    elif target.startswith(REFERENCE_SCHEMES):
        if names_own_setting(target):
            raise ValidationError("Settings of this installation cannot be used as addresses.")
        check_reference(target)
    elif kind == Channel.Kind.CHAT:
        check_address(target)
    else:
        choose_target(target, allow_private=True, resolve=lambda host, port: ["192.0.2.1"])


def _check_addresses(addresses: Sequence[str]) -> None:
    """Refuse what are not mail addresses, and lines that would end a header."""
    if not 0 < len(addresses) <= MOST_ADDRESSES:
        raise ValidationError(f"Enter 1 to {MOST_ADDRESSES} addresses, separated by commas.")
    for address in addresses:
        validate_email(address)
