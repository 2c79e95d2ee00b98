"""Run a workflow in this process: no database, nothing stored (docs/workflow-files.md).

Executor, checker and rules are those of a goal, for workflows that contain their steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from agents.cycle.planner_input import fill_plan
from agents.goals.workflow_files import Workflow
from diagnostics.redaction.redactor import redact, redact_json
from failsoft.completion.loops import Found, Move, NextMove, next_turn
from failsoft.completion.specification import CheckSpec
from failsoft.plans.contract import TaskStatus
from failsoft.plans.execution import Seams, execute
from plans.checks.checking import CheckedWork, CheckerFailedError, CheckOutcome, run_check
from plans.checks.workspaces import remove_workspace, workspace_of
from plans.tools.registry import call_tool

COMPLETED, FAILED = "completed", "failed"


class NeedsStackError(Exception):
    """this workflow asks a model, which needs a running Failsoft"""


@dataclass(slots=True)
class Ended:
    """The end of a workflow, with the field names of a goal's record."""

    status: str = FAILED
    cycle: int = 0
    reason: str | None = None
    message: str | None = None
    decisions: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)


ReportLine = Callable[[str], None]


def run_here(workflow: Workflow, report: ReportLine) -> Ended:
    """Run a workflow to its end; `report` is called with a line for each iteration."""
    request = workflow.request
    if request.plan is None or request.asks_model:
        raise NeedsStackError(NeedsStackError.__doc__)
    run = _Run(workflow, uuid4())
    try:
        turn = run.to_the_end(request.plan, request.completion_check, report)
    finally:
        remove_workspace(workspace_of(None, str(run.key)))
    run.ended.status = FAILED if turn.move is Move.FAIL else COMPLETED
    run.ended.reason, run.ended.message = turn.code, turn.reason
    return run.ended


@dataclass(slots=True)
class _Run:
    workflow: Workflow
    key: UUID
    ended: Ended = field(default_factory=Ended)
    findings: list[Found] = field(default_factory=list)
    feedback: str = ""

    def to_the_end(
        self, plan: dict[str, Any], check: CheckSpec | None, report: ReportLine
    ) -> NextMove:
        while True:
            turn = self.go_round(plan, check)
            report(self.last_line())
            if turn.move is not Move.AGAIN:
                return turn

    def go_round(self, plan: dict[str, Any], check: CheckSpec | None) -> NextMove:
        self.ended.cycle += 1
        payload = fill_plan(plan, self.ended.cycle, self.feedback)
        seams = Seams(call_tool, redact=redact, redact_json=redact_json)
        self.ended.results = execute(payload, seams)
        status = self.ended.results[-1]["task_status"]
        return self._without_check(status) if check is None else self._check(check, status)

    def last_line(self) -> str:
        """Return one line about the iteration that has just ended."""
        line = f"iteration {self.ended.cycle}: {self.ended.results[-1]['task_status']}"
        if self.ended.decisions:
            last = self.ended.decisions[-1]
            line += f", {decision_line(last)}"
        return line

    def _without_check(self, status: str) -> NextMove:
        if status == TaskStatus.COMPLETED:
            return NextMove(Move.FINISH)
        if self.ended.cycle < self.workflow.request.max_iterations:
            return NextMove(Move.AGAIN)
        return NextMove(Move.FAIL, "max_iterations_reached", f"the steps are {status}")

    def _check(self, check: CheckSpec, status: str) -> NextMove:
        check_id = str(uuid4())
        subject = CheckedWork(
            workspace=str(self.key),
            goal=redact(self.workflow.request.goal),
            iteration=self.ended.cycle,
            results=self.ended.results,
            task_status=status,
        )
        try:
            checked = run_check(check, subject, check_id)
        except CheckerFailedError as error:
            reason = redact(f"checker_failed: {error}")
            failed = {"decision": None, "source": "none", "check_id": check_id, "reason": reason}
            self.ended.decisions.append(failed)
            return NextMove(Move.FAIL, "checker_failed", reason)
        self._note(checked, check_id)
        iterations = self.ended.cycle, self.workflow.request.max_iterations
        return next_turn(check, self.findings, *iterations)

    def _note(self, checked: CheckOutcome, check_id: str) -> None:
        verdict, shown = checked.verdict, checked.shown()
        self.findings.append(Found(verdict.decision, verdict.fingerprints, shown["reason"]))
        self.feedback = "; ".join(shown["reasons"]) or shown["reason"] or shown["decision"]
        place = {"iteration": self.ended.cycle, "check_id": check_id}
        self.ended.decisions.append({**place, **shown})


def decision_line(decision: dict[str, Any]) -> str:
    """Return a completion decision as one line."""
    verdict = decision["decision"] or "checker failed"
    why = "; ".join(decision.get("reasons") or ()) or decision["reason"]
    return f"check: {verdict} ({decision['source']})" + (f" - {why}" if why else "")
