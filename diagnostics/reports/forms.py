"""The form of a subscription."""

from collections.abc import Mapping
from datetime import time
from typing import Any
from urllib.parse import urlencode

from django import forms

from diagnostics.accounts.models import Person, SavedView
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.reports.models import DAYS, Cadence, Subscription, read_filter
from diagnostics.selection.query_language import write_query
from diagnostics.selection.selection import read_selection
from diagnostics.web.edit_forms import EditForm, ZoneField

WHOLE = "the project, or the filter"
LONGEST_FILTER = 500


class SubscriptionForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """A report to oneself; administrators may name an external address."""

    view = forms.ModelChoiceField(
        SavedView.objects.none(), label="Saved view", required=False, empty_label=WHOLE
    )
    filter = forms.CharField(
        label="Filter",
        required=False,
        max_length=LONGEST_FILTER,
        help_text="Without a saved view, as in the filter bar: model:haiku -env:dev",
    )
    cadence = forms.ChoiceField(
        label="Frequency",
        choices=[
            (Cadence.DAILY, "Every day"),
            (Cadence.WEEKDAYS, "Monday to Friday"),
            (Cadence.WEEKLY, "Every week"),
            (Cadence.MONTHLY, "Every month"),
        ],
        initial=Cadence.WEEKLY,
    )
    weekday = forms.TypedChoiceField(
        label="Weekday",
        choices=list(enumerate(DAYS)),
        coerce=int,
        required=False,
        empty_value=None,
        help_text="Of weekly reports.",
    )
    month_day = forms.IntegerField(
        label="Day of the month",
        min_value=1,
        max_value=31,
        required=False,
        initial=1,
        help_text="Of monthly reports; the last day in shorter months.",
    )
    at = forms.TimeField(
        label="At", initial=time(8), widget=forms.TimeInput({"type": "time"}, "%H:%M")
    )
    zone = ZoneField(
        label="Time zone",
        max_length=64,
        initial="UTC",
        help_text="Such as Europe/Berlin. Days begin at its midnight.",
    )
    address = forms.EmailField(
        label="Send to", required=False, help_text="Any address; empty: your own."
    )
    only_when_changed = forms.BooleanField(label="Only if something changed", required=False)

    class Meta:
        model = Subscription
        fields = [
            *("view", "cadence", "weekday", "month_day", "at", "zone"),
            *("address", "only_when_changed"),
        ]

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        instance: Subscription,
        person: Person,
        may_administer: bool,
    ) -> None:
        super().__init__(data, instance=instance)
        views: Any = self.fields["view"]
        views.queryset = SavedView.open_to(instance.project_id, person)
        self.fields["filter"].initial = read_filter(instance.query)
        if data is None and not instance.pk and instance.zone == "UTC":
            # The zone is unknown here; the browser fills it in.
            self.fields["zone"].widget.attrs["data-own-zone"] = ""
        if not may_administer or (instance.pk and instance.user_id):
            del self.fields["address"]

    def clean_filter(self) -> str:
        selection = read_selection({"q": self.cleaned_data["filter"]})
        if "q" in selection.faults:
            raise forms.ValidationError(selection.faults["q"])
        try:
            return refuse_secret(write_query(selection.text))
        except SecretTypedError as error:
            raise forms.ValidationError("The filter contains what looks like a secret.") from error

    def clean(self) -> dict[str, Any]:
        """Keep only the day that belongs to the cadence."""
        fields: dict[str, Any] = super().clean() or {}
        cadence = fields.get("cadence")
        day, month_day = fields.get("weekday") or 0, fields.get("month_day") or 1
        fields["weekday"] = day if cadence == Cadence.WEEKLY else None
        fields["month_day"] = month_day if cadence == Cadence.MONTHLY else None
        return fields

    def filled(self, person: Person) -> Subscription:
        """Return the subscription as the form has it; it is not saved."""
        subscription: Subscription = self.save(commit=False)
        text = self.cleaned_data.get("filter", "")
        subscription.query = urlencode({"q": text}) if text else ""
        if not subscription.address and subscription.user is None:
            subscription.user_id = person.pk
        elif subscription.address:
            subscription.user = None
        return subscription
