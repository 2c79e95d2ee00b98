"""Test a model by a worker: one short call in each output mode that its settings name."""

from time import monotonic

from django.contrib.auth.models import User
from django.db import transaction

from agents.llm.models import LanguageModel, ModelCheck
from agents.llm.provider import CompletionRequest, ProviderError
from agents.llm.registry import open_provider
from diagnostics.accounts.audit_log import note
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from diagnostics.redaction.rules import texts_of
from diagnostics.store.outbox import enqueue
from failsoft.retry.answer_schemas import closed_object
from failsoft.retry.policy import OutputMode

TASK = "agents.tasks.try_model"
QUEUE = "plan"
TIMEOUT_SECONDS = 60.0
# A reasoning model thinks before it says a word.
MOST_TOKENS = 256
SAID_BYTES = 400


def request_model_test(model: LanguageModel, by: User) -> None:
    """Enqueue a test of a model; its row has the result."""
    with transaction.atomic():
        ModelCheck.objects.update_or_create(
            language_model=model,
            defaults={
                "project_id": model.project_id,
                "status": ModelCheck.Status.ASKED,
                "asked_at": DatabaseNow(),
                "done_at": None,
                "latency_ms": None,
                "fault": "",
                "said": "",
            },
        )
        note(model.project_id, by, "model.tested", f"{model.provider.name}/{model.name}")
        enqueue(TASK, {"model_id": model.pk}, QUEUE, model.project_id)


def try_model(model_id: int) -> None:
    rows = LanguageModel.objects.select_related("provider").filter(pk=model_id)
    model = rows.first()
    if model is None:
        return
    started, fault, said = monotonic(), "", ""
    latency_ms = None
    deadline = started + min(TIMEOUT_SECONDS, model.attempt_timeout_seconds)
    modes = dict.fromkeys([model.output_mode, *model.supported_output_modes])
    for mode in map(OutputMode, modes):
        try:
            answer = open_provider(model.provider).complete(_request(model, mode, deadline))
        except ProviderError as error:
            fault, said = error.error_type.value, str(error)
            if len(modes) > 1:
                said = f"Output mode {mode.name.title()}: {said}"
            break
        said = said or answer.text
        latency_ms = latency_ms or round((monotonic() - started) * 1000)
    with texts_of(model.project_id):
        ModelCheck.objects.filter(language_model=model).update(
            status=ModelCheck.Status.DONE,
            done_at=DatabaseNow(),
            latency_ms=latency_ms or round((monotonic() - started) * 1000),
            fault=fault,
            said=redact(said, SAID_BYTES),
        )


def _request(model: LanguageModel, mode: OutputMode, deadline: float) -> CompletionRequest:
    # JSON is named, as OpenAI demands in its mode of this name.
    return CompletionRequest(
        model=model.name,
        system="You answer with one JSON object.",
        user='Set the key "answer" to "ready".',
        output_mode=mode,
        json_schema=closed_object({"answer": {"type": "string"}}),
        max_output_tokens=min(MOST_TOKENS, model.max_output_tokens),
        temperature=model.temperature,
        timeout_seconds=max(0.001, deadline - monotonic()),
    )
