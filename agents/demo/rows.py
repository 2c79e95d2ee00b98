"""Rows of the demo's providers, goals, attempts and runs, redacted like all others."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agents.demo.answers import OUTPUT_LIMIT_TOKENS
from agents.demo.attempts import TEMPERATURE, DemoCall
from agents.demo.fleet import LINES
from agents.demo.goals import CycleStory, GoalStory
from agents.goals.models import Attempt, Goal
from agents.goals.state import GoalBudget
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.models import Project
from diagnostics.redaction.redactor import redact, redact_json
from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.redaction.preview import PREVIEW_BYTES
from failsoft.retry.answers import PlannerSchema, Understood
from failsoft.retry.engine import Feedback
from failsoft.retry.policy import RetryConfig
from failsoft.retry.prompts import describe_feedback
from plans.models.run import Run, RunStep

ADDRESS = "https://demo.invalid/"
"""No such host can exist; a provider with this address belongs to the demo."""
TIMEOUT_SECONDS = 30
ADAPTERS = {"anthropic": Provider.Adapter.ANTHROPIC}


def provider_of(project: Project, name: str, at: datetime) -> Provider:
    """Return the row of a made-up provider: disabled, so that no goal is ever sent to it.

    Its name leaves the plain one free for a real provider.
    """
    return Provider(
        project=project,
        name=f"{name} (demo)",
        adapter=ADAPTERS.get(name, Provider.Adapter.OPENAI),
        base_url=f"{ADDRESS}{name}",
        enabled=False,
        created_at=at,
    )


def model_of(provider: Provider, name: str) -> LanguageModel:
    """Return the row of a made-up model of a provider."""
    has_schema_mode = provider.base_url.endswith("openai")
    last = LanguageModel.OutputMode.SCHEMA if has_schema_mode else LanguageModel.OutputMode.TEXT
    return LanguageModel(
        project=provider.project,
        provider=provider,
        name=name,
        enabled=False,
        last_output_mode=last,
        supported_output_modes=["text", "schema"] if has_schema_mode else ["text"],
        max_output_tokens=OUTPUT_LIMIT_TOKENS[PlannerSchema.PLAN],
        temperature=TEMPERATURE,
        attempt_timeout_seconds=TIMEOUT_SECONDS,
        created_at=provider.created_at,
    )


def models_by_provider() -> dict[str, list[str]]:
    """Name the models of each provider of the demo."""
    pairs = dict.fromkeys((line.provider, line.model) for line in LINES)
    return {name: [model for owner, model in pairs if owner == name] for name, _ in pairs}


def goal_of(project: Project, story: GoalStory, model: LanguageModel) -> Goal:
    """Return the row of a told goal."""
    runs = [cycle.run.id for cycle in story.cycles if cycle.run]
    state = story.state
    return Goal(
        id=story.id,
        project=project,
        correlation_id=story.correlation_id,
        mode=story.line.node,
        text_preview=redact(story.scenario.goal, PREVIEW_BYTES),
        status=state.status.value,
        outcome=story.outcome.value,
        pdca_phase=state.pdca_phase.value,
        cycle=state.cycle,
        language_model=model,
        constraints=[
            {"text": redact(text), "optional": optional}
            for text, optional in story.scenario.constraints
        ],
        retry=RetryConfig().model_dump(),
        budget=GoalBudget().model_dump(),
        environment=story.environment,
        source=story.line.source,
        last_validation_error=state.last_validation_error,
        execution_eval=redact_json(state.execution_eval),
        user_text=redact(story.message.text),
        help=list(story.message.help),
        current_run_id=runs[-1] if runs else None,
        fencing_token=len(story.cycles),
        starts=len(story.cycles),
        created_at=story.created_at,
        started_at=story.cycles[0].ladder.calls[0].called_at,
        ended_at=story.ended_at,
    )


def attempts_of(project: Project, story: GoalStory) -> Iterator[Attempt]:
    """Return the rows of all calls of a told goal, feedback included."""
    for cycle in story.cycles:
        earlier: DemoCall | None = None
        for call in cycle.ladder.calls:
            yield _attempt_of(project, story, cycle, call, _feedback(story, cycle, earlier, call))
            earlier = call


def _attempt_of(
    project: Project, story: GoalStory, cycle: CycleStory, call: DemoCall, feedback: str
) -> Attempt:
    reading = call.written.reading if call.written else None
    wrong = call.misreading
    return Attempt(
        project=project,
        goal_id=story.id,
        node=story.line.node,
        cycle=cycle.ladder.cycle,
        attempt=call.number,
        state=_state_of(call),
        provider=story.line.provider,
        model=story.line.model,
        output_mode=call.output_mode,
        simplified=call.simplified,
        dropped_constraints=_dropped(story, call),
        max_output_tokens=OUTPUT_LIMIT_TOKENS[cycle.ladder.schema],
        temperature=TEMPERATURE,
        timeout_seconds=TIMEOUT_SECONDS,
        feedback=redact(feedback),
        error_type=wrong.error_type.value if wrong else _error_type_of(call),
        errors=_dump(wrong.errors) if wrong else [],
        preview=redact(call.written.text, PREVIEW_BYTES) if call.written else "",
        repairs=_dump(reading.repairs) if reading else [],
        coerced=_dump(reading.coerced) if reading else [],
        finish_reason=call.written.finish_reason if call.written else None,
        latency_ms=call.latency_ms,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        called_at=call.called_at,
        occurred_at=call.ended_at,
    )


def _state_of(call: DemoCall) -> str:
    if call.written is None:
        return Attempt.State.CALL_FAILED
    is_valid = isinstance(call.written.reading, Understood)
    return Attempt.State.VALID if is_valid else Attempt.State.INVALID


def _error_type_of(call: DemoCall) -> str | None:
    return call.error_type.value if call.error_type else None


def _dropped(story: GoalStory, call: DemoCall) -> list[str]:
    optional = [text for text, optional in story.scenario.constraints if optional]
    return [redact(text) for text in optional] if call.simplified else []


def _feedback(story: GoalStory, cycle: CycleStory, earlier: DemoCall | None, call: DemoCall) -> str:
    wrong = earlier.misreading if earlier else None
    if earlier is None or earlier.written is None or wrong is None:
        return ""
    feedback = Feedback(earlier.written.text, wrong.error_type, wrong.errors)
    return describe_feedback(cycle.ladder.schema, feedback, simplified=call.simplified)


def _dump(items: tuple[BaseModel, ...]) -> Any:  # noqa: ANN401 - JSON
    return redact_json([item.model_dump(mode="json") for item in items])


def runs_of(project: Project, story: GoalStory) -> Iterator[Run]:
    """Return the rows of a told goal's runs."""
    for cycle in story.cycles:
        if cycle.run is None:
            continue
        yield Run(
            id=cycle.run.id,
            project=project,
            correlation_id=story.correlation_id,
            cycle=cycle.ladder.cycle,
            payload=redact_json(cycle.run.payload),
            contract_version=CONTRACT_VERSION,
            state=Run.State.ENDED,
            task_status=cycle.run.meta["task_status"],
            meta=redact_json(cycle.run.meta),
            fencing_token=1,
            starts=1,
            created_at=cycle.ladder.ended_at,
            started_at=cycle.run.times[0].started_at,
            ended_at=cycle.run.ended_at,
        )


def steps_of(project: Project, story: GoalStory) -> Iterator[RunStep]:
    """Return the rows of all steps of a told goal's runs."""
    for run in (cycle.run for cycle in story.cycles if cycle.run):
        planned = run.payload["steps"]
        for position, (step, row, time) in enumerate(
            zip(planned, run.rows, run.times, strict=False)
        ):
            yield RunStep(
                project=project,
                run_id=run.id,
                position=position,
                step_id=step["step_id"],
                title=redact(step.get("title") or ""),
                tool=row["tool"],
                dependencies=step.get("dependencies", []),
                state=RunStep.State.FINAL,
                ok=row["ok"],
                skipped=row["skipped"],
                reason=row["reason"],
                error=row["error"],
                output=redact_json(row.get("output")),
                fencing_token=1,
                started_at=None if row["skipped"] else time.started_at,
                ended_at=time.ended_at,
            )
