"""Goals of the demo as rows, from the first call to the final message.

Plans are executed by the product's own executor; states come from the product's own
rules. Only the models and the tools are fake. Text is redacted as always.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Any

from pydantic import BaseModel

from agents.demo.calls import (
    DemoAttempts,
    DemoCall,
    Outcome,
    answers_to,
    make_calls,
    pick_answer,
    pick_kind,
)
from agents.demo.events import demo_id, details_of
from agents.demo.story import HOUR, STORY, DemoCycle, Mix, Plot, odds_of, prompts_in_use
from agents.demo.traffic import place_of
from agents.goals.models import Attempt, Goal
from agents.goals.state import (
    SCHEMA_OF_NODE,
    GoalBudget,
    Phase,
    PlanningOutcome,
    Status,
    TaskState,
    outcome_of_good_attempts,
    respond,
)
from diagnostics.redaction.redactor import redact, redact_json
from failsoft.events import CallErrorType
from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.plans.execution import CallContext, CallTool, Seams, ToolTimeoutError, execute
from failsoft.redaction.pipeline import PREVIEW_BYTES
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.engine import Feedback
from failsoft.retry.policy import RetryConfig
from failsoft.retry.prompts import describe_feedback
from plans.models.run import Run, RunStep

QUEUED_FOR = timedelta(milliseconds=180)
TIMEOUT_SECONDS = 30


class UpstreamError(Exception):
    """what the tool asks does not answer as it should"""


FAULTS = (
    (ToolTimeoutError("no answer within 10 s"), timedelta(seconds=10)),
    (UpstreamError("answered 503 three times"), timedelta(seconds=1.7)),
)
"""How a tool fails, and after which time."""


def goals(now: datetime, random: Random, project_id: int) -> Iterator["GoalStory"]:
    """Yield every goal of the story, as seen at `now`; ids differ from project to project."""
    for number, plot in enumerate(STORY.plots, start=1):
        yield GoalStory(now, random, project_id, plot, f"demo-goal-{number:02d}")


class GoalStory:
    """The rows of a goal that has ended, without its model, and the calls of its cycles."""

    def __init__(
        self, now: datetime, random: Random, project_id: int, plot: Plot, correlation_id: str
    ) -> None:
        self.now, self.random, self.environment = now, random, plot.environment
        at = (plot.model, plot.node)
        self.series = next(s for s in STORY.series if (s.model, s.node) == at)
        own = [item for item in STORY.scenarios if item.source == self.series.source]
        self.scenario = random.choice(own)
        self.answers = answers_to(SCHEMA_OF_NODE[plot.node], self.scenario)
        self.ladders: list[DemoAttempts] = []
        self.attempts: list[Attempt] = []
        self.runs: list[Run] = []
        self.steps: list[RunStep] = []
        created_at = now - plot.hours_ago * HOUR
        self.goal = Goal(
            id=demo_id(created_at, project_id, correlation_id),
            project_id=project_id,
            correlation_id=correlation_id,
            mode=plot.node,
            text_preview=redact(self.scenario.goal, PREVIEW_BYTES),
            constraints=[
                {"text": redact(text), "optional": optional}
                for text, optional in self.scenario.constraints
            ],
            retry=RetryConfig().model_dump(),
            budget=GoalBudget().model_dump(),
            environment=plot.environment,
            source=self.series.source,
            created_at=created_at,
            started_at=created_at + QUEUED_FOR,
            ended_at=created_at,
        )
        cycles = STORY.cycles[plot.cycles]
        for number, cycle in enumerate(cycles, start=1):
            self.goal.cycle = number
            self._add_cycle(cycle)
        self._end(is_cancelled=cycles[-1].cancelled_after is not None)

    def _add_cycle(self, cycle: DemoCycle) -> None:
        begin = (self.goal.ended_at or self.now) + QUEUED_FOR
        series, age = self.series, self.now - begin
        # The newest prompt at that time; last week that was the flawed one.
        prompt = prompts_in_use(series.source, self.environment, age)[-1]
        odds = odds_of(series, prompt, age)
        outcomes = (self._outcome(brings, odds.mix) for brings in cycle.calls)
        pick = partial(pick_answer, self.answers, odds.codes, self.random)
        ladder = DemoAttempts(
            self.goal.correlation_id,
            place_of(series, self.environment, prompt, self.now, begin),
            make_calls(series.pace, outcomes, begin, pick, self.random),
            self.goal.cycle,
        )
        self.ladders.append(ladder)
        self.attempts.extend(self._attempts(ladder))
        self.goal.ended_at = ladder.ended_at
        if ladder.reason is None:
            self._add_run(cycle, ladder.ended_at)

    def _outcome(self, brings: str, mix: Mix) -> Outcome:
        if brings == "bad":
            return pick_kind(mix, self.random)
        return CallErrorType.TIMEOUT if brings == "lost" else None

    def _attempts(self, ladder: DemoAttempts) -> Iterator[Attempt]:
        optional = [redact(text) for text, optional in self.scenario.constraints if optional]
        feedback = ""
        for call in ladder.calls:
            reading = call.answer.reading if call.answer else None
            wrong, simplified = call.misreading, call.number > 1
            yield Attempt(
                project_id=self.goal.project_id,
                goal=self.goal,
                node=ladder.place.node,
                cycle=ladder.cycle,
                state=_state_of(call),
                provider=ladder.place.provider,
                model=ladder.place.model,
                simplified=simplified,
                dropped_constraints=optional if simplified else [],
                timeout_seconds=TIMEOUT_SECONDS,
                feedback=feedback,
                error_type=wrong.error_type.value if wrong else call.error_type,
                errors=_dump(wrong.errors) if wrong else [],
                preview=redact(call.answer.text, PREVIEW_BYTES) if call.answer else "",
                repairs=_dump(reading.repairs) if reading else [],
                coerced=_dump(reading.coerced) if reading else [],
                called_at=call.called_at,
                occurred_at=call.ended_at,
                **details_of(ladder, call),
            )
            feedback = redact(_feedback(ladder.schema, call))

    def _add_run(self, cycle: DemoCycle, created_at: datetime) -> None:
        goal, payload = self.goal, self.scenario.plan
        error, took = self.random.choice(FAULTS)
        tool, stop = self._tool(cycle.failing_step, error), stopping_after(cycle.cancelled_after)
        *rows, meta = execute(payload, Seams(tool, stop, redact, redact_json))
        run = Run(
            id=demo_id(created_at, goal.project_id, goal.correlation_id, "run"),
            project_id=goal.project_id,
            correlation_id=goal.correlation_id,
            cycle=goal.cycle,
            payload=redact_json(payload),
            contract_version=CONTRACT_VERSION,
            state=Run.State.ENDED,
            task_status=meta["task_status"],
            meta=meta,
            created_at=created_at,
            started_at=created_at + QUEUED_FOR,
        )
        ended_at = created_at + QUEUED_FOR
        for position, (step, row) in enumerate(zip(payload["steps"], rows, strict=True)):
            # Steps follow each other; a skipped one takes no time.
            started_at = None if row["skipped"] else ended_at
            if started_at:
                usual = timedelta(milliseconds=round(260 * self.random.lognormvariate(0, 0.5)))
                ended_at += usual if row["ok"] else took
            self.steps.append(
                RunStep(
                    project_id=goal.project_id,
                    run_id=run.pk,
                    position=position,
                    title=redact(step["title"]),
                    dependencies=step["dependencies"],
                    state=RunStep.State.FINAL,
                    started_at=started_at,
                    ended_at=ended_at,
                    **row,
                )
            )
        run.ended_at = goal.ended_at = ended_at
        goal.current_run_id = run.pk
        self.runs.append(run)

    def _tool(self, failing_step: int | None, error: Exception) -> CallTool:
        steps = {step.tool: step for step in self.scenario.steps}
        failing = self.scenario.steps[failing_step - 1] if failing_step else None

        def call(name: str, args: Mapping[str, Any], context: CallContext) -> object:
            if steps[name] is failing:
                raise error
            return steps[name].output

        return call

    def _end(self, *, is_cancelled: bool) -> None:
        """End the goal by the product's own rules."""
        goal = self.goal
        state, outcome = self._conclude(is_cancelled=is_cancelled)
        message = respond(state, outcome, goal.correlation_id, self.scenario.answer)
        goal.status, goal.outcome = state.status.value, outcome.value
        goal.pdca_phase = state.pdca_phase.value
        goal.last_validation_error = state.last_validation_error
        goal.execution_eval = redact_json(state.execution_eval)
        goal.user_text, goal.help = redact(message.text), list(message.help)

    def _conclude(self, *, is_cancelled: bool) -> tuple[TaskState, PlanningOutcome]:
        last, initial = self.ladders[-1], TaskState(cycle=self.goal.cycle)
        if last.reason == "timeout":
            return initial.stopped("timeout"), PlanningOutcome.PROVIDER_FAILED
        if last.reason is not None:
            names = self.series.provider, self.series.model
            state = initial.degraded(last.schema, len(last.calls), *names)
            return state, PlanningOutcome.DEGRADED
        meta = self.runs[-1].meta or {}
        evaluation = {"task_status": meta["task_status"], "reason": meta["reason"]}
        calls_used = [len(item.calls) for item in self.ladders]
        outcome = outcome_of_good_attempts(calls_used, stubbed=False)
        if is_cancelled:
            status, outcome = Status.CANCELLED, PlanningOutcome.CANCELLED
        elif meta["ok"]:
            status = Status.COMPLETED
        else:
            return initial.unfinished(evaluation), outcome
        update = {"status": status, "pdca_phase": Phase.ACT, "execution_eval": evaluation}
        return initial.model_copy(update=update), outcome


def stopping_after(steps: int | None) -> Callable[[], str | None]:
    """Return the `stop` of a run that is cancelled after `steps` steps, or never."""
    polls = count()
    return lambda: "cancelled" if steps is not None and next(polls) >= steps else None


def _state_of(call: DemoCall) -> str:
    if call.answer is None:
        return Attempt.State.CALL_FAILED
    return Attempt.State.INVALID if call.misreading else Attempt.State.VALID


def _feedback(schema: PlannerSchema, call: DemoCall) -> str:
    wrong = call.misreading
    if call.answer is None or wrong is None:
        return ""
    feedback = Feedback(call.answer.text, wrong.error_type, wrong.errors)
    return describe_feedback(schema, feedback, simplified=True)


def _dump(items: tuple[BaseModel, ...]) -> Any:  # noqa: ANN401 - JSON
    return redact_json([item.model_dump(mode="json") for item in items])
