"""Goals of the demo from the first call to the sentence at the end.

The plans are run by the product's own executor, the states come from the product's own
rules; only the models and the tools are made up.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from agents.demo.answers import DemoAnswer, good_answers
from agents.demo.attempts import (
    SCENARIOS,
    SCHEMA_OF_NODE,
    DemoCall,
    Ladder,
    Repertoire,
    answer_call,
    lost_call,
    repertoire_of,
)
from agents.demo.events import demo_id
from agents.demo.fleet import LINES, DemoSeries, prompts_in_use, release_at
from agents.demo.goal_plots import GOOD, LOST, PLOTS, DemoCycle, Plot
from agents.demo.incidents import odds_of
from agents.demo.sample_goals import Scenario
from agents.goals.responses import UserMessage, respond
from agents.goals.state import Phase, PlanningOutcome, Status, TaskState, outcome_of_good_ladders
from failsoft.events import CallErrorType
from failsoft.plans.execution import CallContext, CallTool, Seams, ToolTimeoutError, execute
from failsoft.retry.answers import PlannerSchema, Understood

QUEUED_FOR = timedelta(milliseconds=180)
TIMEOUT_MS = 30_000


class UpstreamError(Exception):
    """what the tool asks does not answer as it should"""


@dataclass(frozen=True, slots=True)
class ToolFault:
    """How a tool fails, and after what time."""

    error: Exception
    took: timedelta


FAULTS = (
    ToolFault(ToolTimeoutError("no answer within 10 s"), timedelta(seconds=10)),
    ToolFault(UpstreamError("answered 503 three times"), timedelta(seconds=1.7)),
)


@dataclass(frozen=True, slots=True)
class StepTime:
    """When a step ran."""

    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class RunStory:
    """One execution of a plan; `rows` as the contract writes them, `__meta__` last."""

    id: UUID
    payload: dict[str, Any]
    rows: list[dict[str, Any]]
    times: tuple[StepTime, ...]

    @property
    def meta(self) -> dict[str, Any]:
        """The closing entry."""
        return self.rows[-1]

    @property
    def ended_at(self) -> datetime:
        """When its last step was over."""
        return self.times[-1].ended_at


@dataclass(frozen=True, slots=True)
class CycleStory:
    """The calls of one cycle and the run of what they brought, if anything."""

    ladder: Ladder
    run: RunStory | None

    @property
    def ended_at(self) -> datetime:
        """When the cycle was over."""
        return self.run.ended_at if self.run else self.ladder.ended_at


@dataclass(frozen=True, slots=True)
class GoalStory:
    """A goal that has ended."""

    id: UUID
    correlation_id: str
    scenario: Scenario
    line: DemoSeries
    environment: str
    cycles: tuple[CycleStory, ...]
    state: TaskState
    outcome: PlanningOutcome
    message: UserMessage
    created_at: datetime

    @property
    def ended_at(self) -> datetime:
        """When its last cycle was over."""
        return self.cycles[-1].ended_at


def goals(now: datetime, random: Random, owner: object = "") -> Iterator[GoalStory]:
    """Tell every goal of `PLOTS`, as seen at `now`; ids differ from owner to owner."""
    repertoires = {
        source: repertoire_of(scenarios, random) for source, scenarios in SCENARIOS.items()
    }
    for number, plot in enumerate(PLOTS, start=1):
        line = LINES[plot.line]
        scenario = random.choice(SCENARIOS[line.source])
        repertoire = repertoires[line.source]
        teller = _Teller(now, random, owner, plot, line, scenario, repertoire)
        yield teller.tell(number)


@dataclass(frozen=True, slots=True)
class _Teller:
    now: datetime
    random: Random
    owner: object
    plot: Plot
    line: DemoSeries
    scenario: Scenario
    repertoire: Repertoire

    @property
    def schema(self) -> PlannerSchema:
        return SCHEMA_OF_NODE[self.line.node]

    def tell(self, number: int) -> GoalStory:
        created_at = self.now - timedelta(hours=self.plot.hours_ago)
        correlation_id = f"demo-goal-{number:02d}"
        cycles: list[CycleStory] = []
        begin = created_at + QUEUED_FOR
        for turn in self.plot.turns:
            cycles.append(self._cycle(turn, len(cycles) + 1, correlation_id, begin))
            begin = cycles[-1].ended_at + QUEUED_FOR
        state, outcome = conclude(cycles, self.plot.turns[-1])
        return GoalStory(
            id=demo_id(created_at, self.owner, correlation_id),
            correlation_id=correlation_id,
            scenario=self.scenario,
            line=self.line,
            environment=self.plot.environment,
            cycles=tuple(cycles),
            state=state,
            outcome=outcome,
            message=respond(state, outcome, correlation_id, self.scenario.answer),
            created_at=created_at,
        )

    def _cycle(
        self, turn: DemoCycle, cycle: int, correlation_id: str, begin: datetime
    ) -> CycleStory:
        age = self.now - begin
        # The newest prompt of the time: last week that was the flawed one.
        prompt = prompts_in_use(self.line.source, self.plot.environment, age)[-1]
        calls = self._calls(turn, cycle, prompt, begin)
        ladder = Ladder(
            correlation_id=correlation_id,
            line=self.line,
            environment=self.plot.environment,
            prompt_version=prompt,
            release=release_at(self.now, age),
            cycle=cycle,
            calls=calls,
            reason=reason_of(self.line, turn),
        )
        return CycleStory(ladder, self._run(turn, ladder) if turn.calls[-1] == GOOD else None)

    def _calls(
        self, turn: DemoCycle, cycle: int, prompt: str, begin: datetime
    ) -> tuple[DemoCall, ...]:
        odds = odds_of(self.line, prompt, self.now - begin)
        calls: list[DemoCall] = []
        for number, brings in enumerate(turn.calls, start=1):
            at = calls[-1].ended_at if calls else begin
            if brings == LOST:
                calls.append(lost_call(self.line, number, CallErrorType.TIMEOUT, at, TIMEOUT_MS))
                continue
            spoiled = self.repertoire.pick_spoiled(self.schema, odds, self.random)
            written = self._good(cycle) if brings == GOOD else spoiled
            calls.append(answer_call(self.line, number, written, at, self.random))
        return tuple(calls)

    def _good(self, cycle: int) -> DemoAnswer:
        return next(good_answers(self.schema, self.scenario, cycle))

    def _run(self, turn: DemoCycle, ladder: Ladder) -> RunStory:
        payload, fault = payload_of(ladder), self.random.choice(FAULTS)
        seams = Seams(self._tool(turn, fault), stopping_after(turn.cancelled_after))
        rows = execute(payload, seams)
        times = self._times(ladder.ended_at, rows[:-1], fault)
        return RunStory(
            demo_id(ladder.ended_at, self.owner, ladder.correlation_id, "run"),
            payload,
            rows,
            times,
        )

    def _tool(self, turn: DemoCycle, fault: ToolFault) -> CallTool:
        failing = turn.failing_step
        broken = self.scenario.steps[failing - 1].tool if failing else None

        def call(name: str, args: Mapping[str, Any], context: CallContext) -> object:
            if name == broken:
                raise fault.error
            return self.scenario.outputs[name]

        return call

    def _times(
        self, begin: datetime, rows: list[dict[str, Any]], fault: ToolFault
    ) -> tuple[StepTime, ...]:
        """Let steps follow each other; a skipped one takes no time."""
        times: list[StepTime] = []
        for row in rows:
            started_at = times[-1].ended_at if times else begin + QUEUED_FOR
            times.append(StepTime(started_at, started_at + self._took(row, fault)))
        return tuple(times)

    def _took(self, row: dict[str, Any], fault: ToolFault) -> timedelta:
        if row["skipped"]:
            return timedelta(0)
        usual = round(260 * self.random.lognormvariate(0, 0.5))
        return timedelta(milliseconds=usual) if row["ok"] else fault.took


def payload_of(ladder: Ladder) -> dict[str, Any]:
    """Return what the last call of a good ladder said, a single step as a plan of one."""
    written = ladder.calls[-1].written
    value = written.reading.value if written and isinstance(written.reading, Understood) else {}
    if ladder.schema is PlannerSchema.PLAN:
        return value
    tool = {"name": value["tool"], "args": value["args"]}
    return {"steps": [{"step_id": "step_1", "dependencies": [], "tool": tool}]}


def stopping_after(steps: int | None) -> Callable[[], str | None]:
    """Build the stop of a run cancelled after so many steps, never when None."""
    asked: list[None] = []

    def stop() -> str | None:
        asked.append(None)
        return "cancelled" if steps is not None and len(asked) > steps else None

    return stop


def reason_of(line: DemoSeries, turn: DemoCycle) -> str | None:
    """Say why the ladder of a turn degraded, if it did."""
    if turn.calls[-1] == GOOD:
        return None
    return "timeout" if turn.calls[-1] == LOST else f"{line.node}_parse_failed"


def conclude(cycles: list[CycleStory], last: DemoCycle) -> tuple[TaskState, PlanningOutcome]:
    """Work out the state and outcome a goal ends in, by the product's own rules."""
    ladder, run = cycles[-1].ladder, cycles[-1].run
    begun = TaskState(cycle=len(cycles))
    if run is None and ladder.calls[-1].written is None:
        return begun.stopped("timeout"), PlanningOutcome.PROVIDER_FAILED
    if run is None:
        line = ladder.line
        state = begun.degraded(ladder.schema, len(ladder.calls), line.provider, line.model)
        return state, PlanningOutcome.DEGRADED
    evaluation = {"task_status": run.meta["task_status"], "reason": run.meta["reason"]}
    if last.cancelled_after is not None:
        return _ended(begun, Status.CANCELLED, evaluation), PlanningOutcome.CANCELLED
    outcome = outcome_of_good_ladders([len(item.ladder.calls) for item in cycles], stubbed=False)
    if run.meta["ok"]:
        return _ended(begun, Status.COMPLETED, evaluation), outcome
    return begun.unfinished(evaluation), outcome


def _ended(state: TaskState, status: Status, evaluation: dict[str, Any]) -> TaskState:
    return state.model_copy(
        update={"status": status, "pdca_phase": Phase.ACT, "execution_eval": evaluation}
    )
