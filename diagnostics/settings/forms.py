"""Forms of the settings and account pages."""

from datetime import datetime, timedelta

from django import forms
from django.contrib.auth.models import User
from django.utils.text import slugify

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Membership, Profile, Project
from diagnostics.ingest.models import Quota
from diagnostics.redaction.fields import RedactedFormField
from diagnostics.web.edit_forms import EditForm, ZoneField
from failsoft.redaction.re2_search import BadPatternError, compile_pattern

SCOPES = {
    Scope.INGEST: "ingest: post events, outcomes and deploys",
    Scope.READ: "read: goals, failures, exports, metrics",
    Scope.ADMIN: "admin: ingest, read and changes",
}
LIFETIMES = {"": "never", "30": "in 30 days", "90": "in 90 days", "365": "in a year"}


class ProjectForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """The name of a project; its slug is made from it once."""

    class Meta:
        model = Project
        fields = ["name"]

    def make_slug(self) -> str:
        base = slugify(self.cleaned_data["name"])[:50] or "project"
        slugs = set(Project.objects.filter(slug__startswith=base).values_list("slug", flat=True))
        numbered = (f"{base}-{number}" for number in range(2, len(slugs) + 3))
        return next(slug for slug in (base, *numbered) if slug not in slugs)


class InviteForm(forms.Form):
    email = forms.EmailField(
        label="Email", required=False, help_text="Empty: you get a link to share."
    )
    role = forms.ChoiceField(choices=Membership.Role.choices, initial="viewer")


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Membership.Role.choices)


class KeyForm(forms.Form):
    name = RedactedFormField(max_length=200, help_text="Where it is used.")
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, text) for scope, text in SCOPES.items()],
        initial=["ingest"],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.ChoiceField(choices=list(LIFETIMES.items()), label="Expires", required=False)

    def expires_at(self, now: datetime) -> datetime | None:
        days = self.cleaned_data["days"]
        return now + timedelta(days=int(days)) if days else None


class QuotaForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """The limits of a project; an empty field has the installation's default."""

    class Meta:
        model = Quota
        labels = {
            "key_events_per_second": "Events per second and key",
            "key_burst_events": "Burst per key",
            "events_per_day": "Events per day",
            "events_per_month": "Events per month",
            "spike_events_per_minute": "Spike limit, events per minute",
        }
        fields = list(labels)


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    class Meta:
        model = User
        fields = ["first_name", "last_name", "email"]


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    zone = ZoneField(
        required=False,
        max_length=64,
        label="Time zone",
        help_text="For example Europe/Oslo. Empty: browser time zone.",
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
    )
    theme = forms.ChoiceField(choices=Profile.Theme.choices, required=False)

    class Meta:
        model = Profile
        fields = ["zone", "theme"]

    def clean_theme(self) -> str:
        theme: str = self.cleaned_data["theme"]
        return theme or "system"


class RedactionRuleForm(forms.Form):
    name = RedactedFormField(max_length=80)
    kind = forms.RegexField(
        r"^[a-z0-9_-]{1,40}$",
        help_text="Name in the marker: a-z, 0-9, _ and -.",
        error_messages={"invalid": "1 to 40 of a-z, 0-9, _ and -."},
    )
    pattern = forms.CharField(max_length=500, strip=False)
    text = forms.CharField(
        label="Sample text",
        help_text="Not stored.",
        max_length=16_384,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )

    def clean_pattern(self) -> str:
        """Refuse what RE2 refuses, with its message."""
        pattern: str = self.cleaned_data["pattern"]
        try:
            compile_pattern(pattern)
        except BadPatternError as error:
            raise forms.ValidationError(str(error)) from error
        return pattern
