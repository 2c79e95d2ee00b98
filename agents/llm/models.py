"""Providers, the models they serve, and the last test of each."""

from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.constraints import NamedRow, check, choices_of, known, unique
from diagnostics.figures import Tone
from failsoft.retry import policy

# A test not done by then waits for a worker, or its message is lost.
MODEL_CHECK_WAIT = timedelta(minutes=2)


class Provider(NamedRow):
    """An endpoint that answers prompts; its credential is a reference."""

    class Adapter(models.TextChoices):
        OPENAI = "openai", "OpenAI"
        ANTHROPIC = "anthropic"
        # Replies from a queue; refused unless the installation allows it.
        SCRIPTED = "scripted"

    project = models.ForeignKey(Project, models.CASCADE, related_name="providers")
    name = models.CharField(max_length=100)
    adapter = models.CharField(max_length=16, choices=Adapter)
    base_url = models.CharField(max_length=500, blank=True, default="")
    # `env:NAME` or `file:/path`; empty for an endpoint that needs none.
    credential = models.CharField(max_length=500, blank=True, default="")
    # False if a project's administrator set the address: each call then looks at where it leads.
    allows_private = models.BooleanField(default=True, db_default=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            unique("agents_provider_name_once_a_project", "project name"),
            known("agents_provider_adapter_known", "adapter", "openai anthropic scripted"),
            check(
                "agents_provider_credential_is_a_reference",
                Q(credential="")
                | Q(credential__startswith="env:")
                | Q(credential__startswith="file:"),
            ),
        ]

    @property
    def takes_temperature(self) -> bool:
        """Whether a temperature is sent: Anthropic's SDK no longer has this parameter."""
        return self.adapter != self.Adapter.ANTHROPIC


class LanguageModel(NamedRow):
    """A model of a provider, with the settings of its calls."""

    OutputMode = policy.OutputMode

    project = models.ForeignKey(Project, models.CASCADE, related_name="language_models")
    provider = models.ForeignKey(Provider, models.CASCADE, related_name="language_models")
    name = models.CharField(max_length=200)
    is_default = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)
    # The mode of every attempt but the last, and that of the last one.
    output_mode = models.CharField(
        max_length=8, choices=choices_of(OutputMode), default=OutputMode.TEXT
    )
    last_output_mode = models.CharField(
        max_length=8, choices=choices_of(OutputMode), default=OutputMode.TEXT
    )
    supported_output_modes = ArrayField(
        models.CharField(max_length=8, choices=choices_of(OutputMode)), default=list, blank=True
    )
    max_output_tokens = models.PositiveIntegerField(default=1024)
    # None sends none: some models refuse any but their own.
    temperature = models.FloatField(null=True, blank=True)
    # Whether answers are streamed; the whole answer is judged in any case.
    streaming = models.BooleanField(default=False)
    attempt_timeout_seconds = models.PositiveIntegerField(default=60)
    prompt_version = models.CharField(max_length=100, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            unique("agents_language_model_name_once_a_provider", "provider name"),
            unique("agents_language_model_one_default", "project", Q(is_default=True)),
            known(
                "agents_language_model_output_modes_known",
                "output_mode last_output_mode",
                policy.OutputMode,
            ),
        ]


class ModelCheck(NamedRow):
    """The latest test of a model; `fault` is empty if it answered."""

    named = "{0.language_model_id} {0.status} {0.fault}"

    class Status(models.TextChoices):
        ASKED = "asked"
        DONE = "done"

    language_model = models.OneToOneField(
        LanguageModel, models.CASCADE, primary_key=True, related_name="check_row"
    )
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    status = models.CharField(
        max_length=8, choices=Status, default=Status.ASKED, db_default="asked"
    )
    asked_at = models.DateTimeField(db_default=Now())
    done_at = models.DateTimeField(null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    fault = models.CharField(max_length=32, blank=True, default="")
    said = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [known("agents_modelcheck_status_known", "status", "asked done")]

    @property
    def badge(self) -> tuple[Tone, str]:
        if self.status == self.Status.ASKED:
            is_late = clock.now() > self.asked_at + MODEL_CHECK_WAIT
            return ("bad", "not run within 2 min") if is_late else ("live", "asking")
        if self.fault:
            return "bad", self.fault.replace("_", " ")
        return "good", f"answered in {self.latency_ms} ms"
