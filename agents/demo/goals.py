"""Goals of the demo as rows, from the first call to the final message.

Plans are executed by the product's own executor; states come from the product's own
rules. Only the models and the tools are fake. Text is redacted as always.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from pydantic import BaseModel

from agents.demo.answers import DemoAnswer, good_answers
from agents.demo.calls import (
    SCHEMA_OF_NODE,
    DemoAttempts,
    DemoCall,
    Outcome,
    Repertoire,
    make_calls,
    pick_kind,
    repertoires,
)
from agents.demo.events import demo_id, details_of
from agents.demo.story import (
    HOUR,
    STORY,
    DemoCycle,
    DemoSeries,
    Mix,
    Plot,
    Scenario,
    odds_of,
    prompts_in_use,
)
from agents.demo.traffic import place_of
from agents.goals.models import Attempt, Goal
from agents.goals.state import (
    GoalBudget,
    Phase,
    PlanningOutcome,
    Status,
    TaskState,
    outcome_of_good_attempts,
    respond,
)
from diagnostics.redaction.redactor import redact, redact_json
from failsoft.events import CallErrorType, ParseErrorType
from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.plans.execution import CallContext, CallTool, Seams, ToolTimeoutError, execute
from failsoft.redaction.pipeline import PREVIEW_BYTES
from failsoft.retry.answers import PlannerSchema, Understood
from failsoft.retry.engine import Feedback
from failsoft.retry.policy import RetryConfig
from failsoft.retry.prompts import describe_feedback
from failsoft.retry.proposals import payload_of
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


@dataclass(frozen=True, slots=True)
class GoalStory:
    """The rows of a goal that has ended, without its model, and the calls of its cycles."""

    goal: Goal
    series: DemoSeries
    ladders: list[DemoAttempts] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    steps: list[RunStep] = field(default_factory=list)


def goals(now: datetime, random: Random, project_id: int) -> Iterator[GoalStory]:
    """Yield every goal of the story, as seen at `now`; ids differ from project to project."""
    answers = repertoires(random)
    for number, plot in enumerate(STORY.plots, start=1):
        series = next(s for s in STORY.series if (s.model, s.node) == (plot.model, plot.node))
        own = [item for item in STORY.scenarios if item.source == series.source]
        scenario = random.choice(own)
        builder = _StoryBuilder(now, random, project_id, plot, scenario, answers[series.source])
        yield builder.build(series, f"demo-goal-{number:02d}")


@dataclass(frozen=True, slots=True)
class _StoryBuilder:
    now: datetime
    random: Random
    project_id: int
    plot: Plot
    scenario: Scenario
    answers: Repertoire

    def build(self, series: DemoSeries, correlation_id: str) -> GoalStory:
        created_at = self.now - self.plot.hours_ago * HOUR
        goal = Goal(
            id=demo_id(created_at, self.project_id, correlation_id),
            project_id=self.project_id,
            correlation_id=correlation_id,
            mode=series.node,
            text_preview=redact(self.scenario.goal, PREVIEW_BYTES),
            constraints=[
                {"text": redact(text), "optional": optional}
                for text, optional in self.scenario.constraints
            ],
            retry=RetryConfig().model_dump(),
            budget=GoalBudget().model_dump(),
            environment=self.plot.environment,
            source=series.source,
            created_at=created_at,
            started_at=created_at + QUEUED_FOR,
            ended_at=created_at,
        )
        story = GoalStory(goal, series)
        cycles = STORY.cycles[self.plot.cycles]
        for number, cycle in enumerate(cycles, start=1):
            self._add_cycle(story, cycle, number)
        goal.cycle = goal.fencing_token = goal.starts = len(cycles)
        goal.current_run_id = story.runs[-1].pk if story.runs else None
        # How it ends is set by the product's own rules.
        state, outcome = conclude(story, is_cancelled=cycles[-1].cancelled_after is not None)
        message = respond(state, outcome, goal.correlation_id, self.scenario.answer)
        goal.status, goal.outcome = state.status.value, outcome.value
        goal.pdca_phase = state.pdca_phase.value
        goal.last_validation_error = state.last_validation_error
        goal.execution_eval = redact_json(state.execution_eval)
        goal.user_text, goal.help = redact(message.text), list(message.help)
        return story

    def _add_cycle(self, story: GoalStory, cycle: DemoCycle, number: int) -> None:
        begin = (story.goal.ended_at or self.now) + QUEUED_FOR
        series, age = story.series, self.now - begin
        # The newest prompt at that time; last week that was the flawed one.
        prompt = prompts_in_use(series.source, self.plot.environment, age)[-1]
        odds = odds_of(series, prompt, age)
        schema = SCHEMA_OF_NODE[series.node]

        def answer(kind: ParseErrorType | None) -> DemoAnswer:
            if kind is None:
                return next(good_answers(schema, self.scenario, number))
            return self.answers.pick(schema, kind, self.random, odds.codes)

        outcomes = (self._outcome(brings, odds.mix) for brings in cycle.calls)
        calls = make_calls(series.node, series.pace, outcomes, begin, answer, self.random)
        place = place_of(series, self.plot.environment, prompt, self.now, begin)
        ladder = DemoAttempts(story.goal.correlation_id, place, calls, number)
        story.ladders.append(ladder)
        story.attempts.extend(self._attempts(story.goal, ladder))
        story.goal.ended_at = ladder.ended_at
        if ladder.reason is None:
            self._add_run(story, cycle, ladder)

    def _outcome(self, brings: str, mix: Mix) -> Outcome:
        if brings == "bad":
            return pick_kind(mix, self.random)
        return CallErrorType.TIMEOUT if brings == "lost" else None

    def _attempts(self, goal: Goal, ladder: DemoAttempts) -> Iterator[Attempt]:
        optional = [redact(text) for text, optional in self.scenario.constraints if optional]
        earlier: DemoCall | None = None
        for call in ladder.calls:
            reading = call.answer.reading if call.answer else None
            wrong, simplified = call.misreading, call.number > 1
            yield Attempt(
                project_id=self.project_id,
                goal=goal,
                node=ladder.place.node,
                cycle=ladder.cycle,
                state=_state_of(call),
                provider=ladder.place.provider,
                model=ladder.place.model,
                simplified=simplified,
                dropped_constraints=optional if simplified else [],
                timeout_seconds=TIMEOUT_SECONDS,
                feedback=redact(_feedback(ladder.schema, earlier)),
                error_type=wrong.error_type.value if wrong else call.error_type,
                errors=_dump(wrong.errors) if wrong else [],
                preview=redact(call.answer.text, PREVIEW_BYTES) if call.answer else "",
                repairs=_dump(reading.repairs) if reading else [],
                coerced=_dump(reading.coerced) if reading else [],
                called_at=call.called_at,
                occurred_at=call.ended_at,
                **details_of(ladder, call),
            )
            earlier = call

    def _add_run(self, story: GoalStory, cycle: DemoCycle, ladder: DemoAttempts) -> None:
        answer = ladder.calls[-1].answer
        value = answer.reading.value if answer and isinstance(answer.reading, Understood) else {}
        payload, (error, took) = payload_of(value) or {}, self.random.choice(FAULTS)
        tool = self._tool(cycle.failing_step, error)
        *rows, meta = execute(payload, Seams(tool, stopping_after(cycle.cancelled_after)))
        run = Run(
            id=demo_id(ladder.ended_at, self.project_id, ladder.correlation_id, "run"),
            project_id=self.project_id,
            correlation_id=ladder.correlation_id,
            cycle=ladder.cycle,
            payload=redact_json(payload),
            contract_version=CONTRACT_VERSION,
            state=Run.State.ENDED,
            task_status=meta["task_status"],
            meta=redact_json(meta),
            fencing_token=1,
            starts=1,
            created_at=ladder.ended_at,
            started_at=ladder.ended_at + QUEUED_FOR,
        )
        ended_at = ladder.ended_at + QUEUED_FOR
        for position, (step, row) in enumerate(zip(payload["steps"], rows, strict=True)):
            started_at = ended_at
            # Steps follow each other; a skipped one takes no time.
            if not row["skipped"]:
                usual = timedelta(milliseconds=round(260 * self.random.lognormvariate(0, 0.5)))
                ended_at += usual if row["ok"] else took
            times = (None if row["skipped"] else started_at, ended_at)
            story.steps.append(_step_of(run, position, step, row, times))
        run.ended_at = story.goal.ended_at = ended_at
        story.runs.append(run)

    def _tool(self, failing_step: int | None, error: Exception) -> CallTool:
        outputs = {step.tool: step.output for step in self.scenario.steps}
        broken = self.scenario.steps[failing_step - 1].tool if failing_step else None

        def call(name: str, args: Mapping[str, Any], context: CallContext) -> object:
            if name == broken:
                raise error
            return outputs[name]

        return call


def conclude(story: GoalStory, *, is_cancelled: bool) -> tuple[TaskState, PlanningOutcome]:
    last, initial = story.ladders[-1], TaskState(cycle=story.goal.cycle)
    if last.reason == "timeout":
        return initial.stopped("timeout"), PlanningOutcome.PROVIDER_FAILED
    if last.reason is not None:
        series = story.series
        state = initial.degraded(last.schema, len(last.calls), series.provider, series.model)
        return state, PlanningOutcome.DEGRADED
    meta = story.runs[-1].meta or {}
    evaluation = {"task_status": meta["task_status"], "reason": meta["reason"]}
    outcome = outcome_of_good_attempts([len(item.calls) for item in story.ladders], stubbed=False)
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


def _feedback(schema: PlannerSchema, earlier: DemoCall | None) -> str:
    wrong = earlier.misreading if earlier else None
    if earlier is None or earlier.answer is None or wrong is None:
        return ""
    feedback = Feedback(earlier.answer.text, wrong.error_type, wrong.errors)
    return describe_feedback(schema, feedback, simplified=True)


def _dump(items: tuple[BaseModel, ...]) -> Any:  # noqa: ANN401 - JSON
    return redact_json([item.model_dump(mode="json") for item in items])


def _step_of(
    run: Run,
    position: int,
    step: dict[str, Any],
    row: dict[str, Any],
    times: tuple[datetime | None, datetime],
) -> RunStep:
    return RunStep(
        project_id=run.project_id,
        run_id=run.pk,
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
        started_at=times[0],
        ended_at=times[1],
    )
