"""The form of a channel: what it is, what it wants to hear, and when it rests."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.text import capfirst

from diagnostics.alerting.channels import split_addresses
from diagnostics.alerting.form_fields import ZoneField
from diagnostics.alerting.notification_models import Channel
from diagnostics.alerting.senders.chat_services import ChatAddressError, check_address
from diagnostics.outbound.addresses import ForbiddenAddressError, choose_target
from diagnostics.outbound.credentials import (
    REFERENCE_SCHEMES,
    CredentialError,
    check_reference,
    names_own_setting,
)

MOST_ADDRESSES = 20
WEEK_MINUTES = 7 * 24 * 60


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg] # plain at run time
    """Fields of a channel; the address is asked apart, since it may be secret."""

    target = forms.CharField(
        label="Address",
        required=False,
        max_length=1000,
        help_text="E-mail: addresses, separated by commas. Webhook: an https:// address. "
        "Chat: an address of apprise, such as slack://… or pagerduty://…. "
        "Or env:NAME or file:/run/secrets/NAME, where the worker finds it.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

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
            "min_severity": "Tell from this severity on",
            "quiet_from": "Quiet from",
            "quiet_to": "Quiet until",
            "zone": "Time zone of the quiet hours",
            "digest_above": "Digest beyond so many in an hour",
            "renotify_minutes": "Remind every so many minutes",
            "escalate_after_minutes": "Escalate after minutes",
            "escalate_to": "Escalate to",
            "has_canary": "Check it once a day with a message",
        }
        help_texts = {
            "quiet_to": "What falls in between is told afterwards, if it still lasts.",
            "renotify_minutes": "While nobody has acknowledged. Empty: never.",
            "escalate_after_minutes": "While nobody has acknowledged. Empty: never.",
        }
        widgets = {
            "quiet_from": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
            "quiet_to": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
        super().__init__(*args, **kwargs)
        others = Channel.objects.filter(project_id=self.instance.project_id)
        chosen = self.fields["escalate_to"]
        assert isinstance(chosen, forms.ModelChoiceField)  # noqa: S101 - it is one
        chosen.queryset = others.exclude(pk=self.instance.pk)
        if self.instance.pk:
            self.fields["kind"].disabled = True
            shown = self.instance.kind == Channel.Kind.EMAIL
            self.fields["target"].initial = (
                self.instance.shown if shown or self.instance.credential else ""
            )
            if not shown:
                self.fields["target"].help_text += " Empty: as it is."

    def clean_name(self) -> str:
        """Refuse a name that another channel of the project has."""
        name = " ".join(str(self.cleaned_data["name"]).split())
        taken = Channel.objects.filter(project_id=self.instance.project_id, name=name)
        if taken.exclude(pk=self.instance.pk).exists():
            raise ValidationError("Another channel has this name.")
        return name

    def clean(self) -> dict[str, Any]:
        """Check the address by its kind, and pairs that go together."""
        told: dict[str, Any] = super().clean() or {}
        kind = told.get("kind") or self.instance.kind
        target = str(told.get("target") or "").strip()
        if kind and (target or not self.instance.pk):
            self._check_target(str(kind), target)
        if (told.get("quiet_from") is None) != (told.get("quiet_to") is None):
            self.add_error("quiet_to", "Quiet hours need both ends, or none.")
        if bool(told.get("escalate_to")) != bool(told.get("escalate_after_minutes")):
            self.add_error("escalate_to", "Say both: after how long, and to whom.")
        for name in ("renotify_minutes", "escalate_after_minutes"):
            if (told.get(name) or 0) > WEEK_MINUTES:
                self.add_error(name, f"At most a week: {WEEK_MINUTES:,} minutes.")
        return told

    def _check_target(self, kind: str, target: str) -> None:
        try:
            check_target(kind, target)
        except ValidationError as error:
            self.add_error("target", error)
        except (ChatAddressError, CredentialError, ForbiddenAddressError) as error:
            self.add_error("target", f"{capfirst(str(error))}.")


def check_target(kind: str, target: str) -> None:
    """Look at the form of an address; where it leads is looked at whenever it is used.

    Raises ValidationError, ChatAddressError, CredentialError or ForbiddenAddressError.
    """
    if kind == Channel.Kind.EMAIL:
        _check_addresses(split_addresses(target))
    elif target.startswith(REFERENCE_SCHEMES):
        if names_own_setting(target):
            raise ValidationError("Settings of this installation are no addresses.")
        check_reference(target)
    elif kind == Channel.Kind.CHAT:
        check_address(target)
    else:
        choose_target(target, allow_private=True, resolve=lambda host, port: ["192.0.2.1"])


def _check_addresses(addresses: Sequence[str]) -> None:
    """Refuse what are not mail addresses, and lines that would end a header."""
    if not 0 < len(addresses) <= MOST_ADDRESSES:
        raise ValidationError(f"1 to {MOST_ADDRESSES} addresses, separated by commas.")
    for address in addresses:
        validate_email(address)
