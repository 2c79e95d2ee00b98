"""Forms of the settings pages."""

from datetime import datetime, timedelta

from django import forms
from django.utils.text import slugify

from diagnostics.core.api_keys import Scope
from diagnostics.models import Membership, Project, Quota
from diagnostics.models.redacted import RedactedFormField

SCOPES = {
    Scope.INGEST: "ingest: post events, outcomes and deploys",
    Scope.READ: "read: goals, failures, exports, metrics",
    Scope.ADMIN: "admin: everything above, and change things",
}
LIVES = {"": "never", "30": "in 30 days", "90": "in 90 days", "365": "in a year"}


class ProjectForm(forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """The name of a project; its address is made of it once and stays."""

    class Meta:
        model = Project
        fields = ["name"]

    def make_slug(self) -> str:
        """Make an address that no other project has."""
        base = slugify(self.cleaned_data["name"])[:50] or "project"
        taken = set(Project.objects.filter(slug__startswith=base).values_list("slug", flat=True))
        numbered = (f"{base}-{number}" for number in range(2, len(taken) + 3))
        return next(slug for slug in (base, *numbered) if slug not in taken)


class InviteForm(forms.Form):
    """Who is invited, as what."""

    email = forms.EmailField(
        label="Mail address",
        required=False,
        help_text="Without one you get a link to pass on yourself.",
    )
    role = forms.ChoiceField(choices=Membership.Role.choices, initial="viewer")


class RoleForm(forms.Form):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Membership.Role.choices)


class KeyForm(forms.Form):
    """What a new key is for, what it may do, and until when."""

    name = RedactedFormField(max_length=200, help_text="Where it will be used.")
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, text) for scope, text in SCOPES.items()],
        initial=["ingest"],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.ChoiceField(choices=list(LIVES.items()), label="Expires", required=False)

    def expires_at(self, now: datetime) -> datetime | None:
        """Give the moment from which it is refused."""
        days = self.cleaned_data["days"]
        return now + timedelta(days=int(days)) if days else None


class QuotaForm(forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """The limits of a project; an empty field is the installation's."""

    class Meta:
        model = Quota
        fields = [
            "key_events_per_second",
            "key_burst_events",
            "events_per_day",
            "events_per_month",
            "spike_events_per_minute",
        ]
        labels = {
            "key_events_per_second": "Events a second and key",
            "key_burst_events": "Burst of a key",
            "events_per_day": "Events a day",
            "events_per_month": "Events a month",
            "spike_events_per_minute": "Spike from events a minute",
        }
