"""Forms of the console pages in this app."""

from django import forms
from django.contrib.auth.models import User

from diagnostics.access.profiles import is_zone
from diagnostics.core.redaction.own_rules import BadPatternError, compile_pattern
from diagnostics.models import Profile
from diagnostics.models.redacted import RedactedFormField


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """What a person may change about themselves here."""

    class Meta:
        model = User
        fields = ["first_name", "last_name", "email"]


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """In which zone and which palette a person reads pages."""

    zone = forms.CharField(
        required=False,
        max_length=64,
        label="Time zone",
        help_text="As Europe/Oslo. Empty: the browser's.",
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
    )
    theme = forms.ChoiceField(
        choices=[
            ("system", "As the system has it"),
            ("light", "Light"),
            ("dark", "Dark"),
        ],
        required=False,
    )

    class Meta:
        model = Profile
        fields = ["zone", "theme"]

    def clean_zone(self) -> str:
        """Refuse what is no zone."""
        zone: str = self.cleaned_data["zone"].strip()
        if not is_zone(zone):
            raise forms.ValidationError("Not a zone, such as Europe/Oslo or UTC.")
        return zone

    def clean_theme(self) -> str:
        """Take the system's where nothing was said."""
        theme: str = self.cleaned_data["theme"]
        return theme or "system"


class RedactionRuleForm(forms.Form):
    """A rule of a project, and a text to try it on."""

    name = RedactedFormField(max_length=80)
    kind = forms.RegexField(
        r"^[a-z0-9_-]{1,40}$",
        help_text="What the marker says: a-z, 0-9, _ and -.",
        error_messages={"invalid": "1 to 40 of a-z, 0-9, _ and -."},
    )
    pattern = forms.CharField(max_length=500, strip=False)
    text = forms.CharField(
        label="Text to try it on",
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
