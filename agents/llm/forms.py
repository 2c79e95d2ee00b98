"""Forms about providers, models and purges."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.utils.text import capfirst

from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.models import Project
from diagnostics.constraints import choices_of
from diagnostics.outbound.addresses import ForbiddenAddressError, PrivateAddressError, choose_target
from diagnostics.outbound.credentials import CredentialError, check_reference
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.web.edit_forms import EditForm

PRIVATE_HINT = "only a superuser or FAILSOFT_HTTP_ALLOW_PRIVATE allows it."
# An answer cut off doubles its limit up to four times this, which an attempt's row must hold.
MOST_OUTPUT_TOKENS = 1_000_000
LONGEST_ATTEMPT_SECONDS = 3_600
APPENDED = {"openai": ["/chat/completions"], "anthropic": ["/messages", "/v1"]}


def without_secret(text: str) -> str:
    """Return a text that is sent unmasked; ValidationError if it contains a secret."""
    try:
        return refuse_secret(text)
    except SecretTypedError as error:
        raise ValidationError(
            "This contains what looks like a secret; reference it as the credential."
        ) from error


class ProviderForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """An endpoint; its credential is a reference, never the secret."""

    credential = forms.RegexField(
        r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)?$",
        required=False,
        max_length=500,
        label="Credential",
        help_text="env:NAME or file:/run/secrets/NAME, where every worker can read it.",
        error_messages={"invalid": "Write env:NAME or file:/path, never the secret itself."},
    )

    class Meta:
        model = Provider
        fields = ["name", "adapter", "base_url", "credential", "enabled"]
        labels = {"base_url": "Base URL", "adapter": "API"}
        help_texts = {
            "name": "Shown on every page and in events.",
            "base_url": "Empty: the official endpoint. Otherwise, for example, http://host:8000/v1.",
        }

    def __init__(
        self, *args: Any, project: Project, runs_installation: bool, **kwargs: Any
    ) -> None:
        """`runs_installation`: the user is a superuser."""
        super().__init__(*args, **kwargs)
        self.project = project
        self.runs_installation = runs_installation
        if not settings.FAILSOFT_ALLOW_SCRIPTED:
            choices = Provider.Adapter.choices
            allowed = [choice for choice in choices if choice[0] != "scripted"]
            self.fields["adapter"].choices = allowed  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        name = without_secret(self.cleaned_data["name"])
        others = Provider.objects.filter(project=self.project, name=name)
        if others.exclude(pk=self.instance.pk).exists():
            raise ValidationError("A provider with this name exists.")
        return name

    def clean_credential(self) -> str:
        """Refuse a reference that would send a secret of others to an endpoint."""
        reference: str = self.cleaned_data["credential"]
        if reference == self.instance.credential:
            return reference
        try:
            check_reference(reference)
        except CredentialError as error:
            raise ValidationError(capfirst(str(error))) from error
        if not self._may_reference(reference):
            raise ValidationError(
                "Only a superuser can enter this credential, unless FAILSOFT_PROJECT_CREDENTIALS"
                f" has it for the project {self.project.slug}."
            )
        return reference

    def _may_reference(self, reference: str) -> bool:
        own = settings.FAILSOFT_PROJECT_CREDENTIALS.get(self.project.slug, ())
        return self.runs_installation or reference in {"", *own}

    def clean(self) -> dict[str, Any]:
        """Refuse to send a secret of others to another endpoint."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if "base_url" in self.changed_data:
            self.instance.allows_private = self.runs_installation
        moved = {"adapter", "base_url"} & set(self.changed_data)
        is_kept = "credential" not in self.changed_data
        if moved and is_kept and not self._may_reference(self.instance.credential):
            self.add_error(
                "base_url",
                "A superuser set the credential for the previous address. Enter another"
                " credential with the new address.",
            )
        return cleaned

    def clean_base_url(self) -> str:
        """Accept http and https only, and the script of a scripted provider."""
        address = without_secret(self.cleaned_data["base_url"].strip())
        # What the SDK appends itself is often copied with the rest.
        for ending in APPENDED.get(self.cleaned_data.get("adapter", ""), ()):
            address = address.rstrip("/").removesuffix(ending)
        if address and not address.startswith(("http://", "https://", "file:/")):
            raise ValidationError("Must start with https:// or http://")
        if address.startswith("http") and "?" in address:
            raise ValidationError(
                "Leave out what follows the question mark. For Azure, enter"
                " https://NAME.openai.azure.com/openai/v1."
            )
        # Whether a call is answered, refused or times out says what listens at an address.
        is_free = self.runs_installation or settings.FAILSOFT_HTTP_ALLOW_PRIVATE
        if address.startswith("http") and not is_free and "base_url" in self.changed_data:
            try:
                choose_target(address)
            except PrivateAddressError as error:
                raise ValidationError(f"{error}: {PRIVATE_HINT}") from error
            except ForbiddenAddressError:
                pass  # A call says what is wrong with it.
        return address


class LanguageModelForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    supported_output_modes = forms.MultipleChoiceField(
        choices=choices_of(LanguageModel.OutputMode),
        required=False,
        label="Capabilities",
        widget=forms.CheckboxSelectMultiple,
        help_text="Output modes that the model accepts. Test now tries each of them.",
    )
    max_output_tokens = forms.IntegerField(
        label="Max output tokens",
        min_value=1,
        max_value=MOST_OUTPUT_TOKENS,
        help_text="Thinking counts, too: 4,000 or more for a reasoning model.",
    )
    temperature = forms.FloatField(
        required=False,
        min_value=0,
        max_value=2,
        help_text="Empty: not sent. GPT-5 and other reasoning models accept none but their own.",
    )
    attempt_timeout_seconds = forms.IntegerField(
        label="Timeout per attempt (s)", min_value=1, max_value=LONGEST_ATTEMPT_SECONDS
    )

    class Meta:
        model = LanguageModel
        fields = [
            *("name", "enabled", "is_default", "output_mode", "last_output_mode"),
            *("supported_output_modes", "max_output_tokens", "temperature"),
            *("attempt_timeout_seconds", "streaming", "prompt_version"),
        ]
        labels = {
            "is_default": "Default of the project",
            "output_mode": "Output mode",
            "last_output_mode": "Output mode, final attempt",
            "streaming": "Streaming",
        }

    def __init__(self, *args: Any, provider: Provider, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.provider = provider

    def clean_name(self) -> str:
        name = without_secret(self.cleaned_data["name"])
        others = LanguageModel.objects.filter(provider=self.provider, name=name)
        if others.exclude(pk=self.instance.pk).exists():
            raise ValidationError("This provider already has a model with this name.")
        return name

    def clean_prompt_version(self) -> str:
        return without_secret(self.cleaned_data["prompt_version"])


class PurgeForm(forms.Form):
    correlation_id = forms.CharField(
        label="Run ID",
        max_length=200,
        required=False,
        help_text="Empty: all recorded data of this project.",
    )
    typed = forms.CharField(
        label="Type it again to confirm",
        help_text="The run ID, or the project's name for everything.",
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        expected = cleaned.get("correlation_id") or self.project.name
        if cleaned.get("typed") != expected:
            self.add_error("typed", "This is not what will be deleted.")
        return cleaned


class ProjectDeletionForm(forms.Form):
    slug = forms.CharField(
        label="Type the slug to confirm", widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        self.fields["slug"].help_text = f"The slug of this project is {project.slug}."

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug != self.project.slug:
            raise forms.ValidationError("This is not the slug of this project.")
        return slug


class LanguageModelField(forms.ModelChoiceField):  # type: ignore[type-arg]  # plain at run time
    def label_from_instance(self, obj: Model) -> str:
        """Include the provider: two of them may serve models of the same name."""
        return f"{obj.provider.name}/{obj.name}" if isinstance(obj, LanguageModel) else ""


def enabled_models(project: Project) -> QuerySet[LanguageModel]:
    models = LanguageModel.objects.filter(project=project, enabled=True)
    return (
        models.filter(provider__enabled=True)
        .select_related("provider")
        .order_by("provider__name", "name")
    )
