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
from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import DecidedCheck, Move, NextMove, next_turn
from failsoft.plans.contract import TaskStatus
from failsoft.plans.execution import Seams, execute
from plans.checks.checking import CheckedWork, CheckerFailedError, run_check
from plans.checks.workspaces import remove_workspace, workspace_of
from plans.tools.registry import call_tool

COMPLETED, FAILED = "completed", "failed"


class NeedsStackError(Exception):
    """this workflow asks a model, which needs a running Failsoft"""


@dataclass(slots=True)
class WorkflowResult:
    """The end of a workflow, with the field names of a goal's record."""

    status: str = FAILED
    cycle: int = 0
    reason: str | None = None
    message: str | None = None
    decisions: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)


ReportLine = Callable[[str], None]


def run_here(workflow: Workflow, report: ReportLine) -> WorkflowResult:
    """Run a workflow to its end; `report` is called with a line for each iteration."""
    request = workflow.request
    if request.plan is None or request.asks_model:
        raise NeedsStackError(NeedsStackError.__doc__)
    run = _WorkflowRun(workflow, uuid4())
    try:
        last_move = run.to_the_end(request.plan, request.completion_check, report)
    finally:
        remove_workspace(workspace_of(None, str(run.key)))
    run.result.status = FAILED if last_move.move is Move.FAIL else COMPLETED
    run.result.reason, run.result.message = last_move.code, last_move.reason
    return run.result


@dataclass(slots=True)
class _WorkflowRun:
    workflow: Workflow
    key: UUID
    result: WorkflowResult = field(default_factory=WorkflowResult)
    findings: list[DecidedCheck] = field(default_factory=list)
    feedback: str = ""

    def to_the_end(
        self, plan: dict[str, Any], check: CheckSpec | None, report: ReportLine
    ) -> NextMove:
        while True:
            next_move = self.go_round(plan, check)
            line = f"iteration {self.result.cycle}: {self.result.results[-1]['task_status']}"
            if self.result.decisions:
                line += f", {decision_line(self.result.decisions[-1])}"
            report(line)
            if next_move.move is not Move.AGAIN:
                return next_move

    def go_round(self, plan: dict[str, Any], check: CheckSpec | None) -> NextMove:
        self.result.cycle += 1
        payload = fill_plan(plan, self.result.cycle, self.feedback)
        seams = Seams(call_tool, redact=redact, redact_json=redact_json)
        self.result.results = execute(payload, seams)
        status = self.result.results[-1]["task_status"]
        return self._without_check(status) if check is None else self._check(check, status)

    def _without_check(self, status: str) -> NextMove:
        if status == TaskStatus.COMPLETED:
            return NextMove(Move.FINISH)
        if self.result.cycle < self.workflow.request.max_iterations:
            return NextMove(Move.AGAIN)
        return NextMove(Move.FAIL, "max_iterations_reached", f"the steps are {status}")

    def _check(self, check: CheckSpec, status: str) -> NextMove:
        check_id = str(uuid4())
        subject = CheckedWork(
            workspace=str(self.key),
            goal=redact(self.workflow.request.goal),
            iteration=self.result.cycle,
            results=self.result.results,
            task_status=status,
        )
        try:
            checked = run_check(check, subject, check_id)
        except CheckerFailedError as error:
            reason = redact(f"checker_failed: {error}")
            failed = {"decision": None, "source": "none", "check_id": check_id, "reason": reason}
            self.result.decisions.append(failed)
            return NextMove(Move.FAIL, "checker_failed", reason)
        verdict, shown = checked.verdict, checked.shown()
        self.findings.append(DecidedCheck(verdict.decision, verdict.fingerprints, shown["reason"]))
        self.feedback = "; ".join(shown["reasons"]) or shown["reason"] or shown["decision"]
        place = {"iteration": self.result.cycle, "check_id": check_id}
        self.result.decisions.append({**place, **shown})
        iterations = self.result.cycle, self.workflow.request.max_iterations
        return next_turn(check, self.findings, *iterations)


def decision_line(decision: dict[str, Any]) -> str:
    verdict = decision["decision"] or "checker failed"
    reason = "; ".join(decision.get("reasons") or ()) or decision["reason"]
    return f"check: {verdict} ({decision['source']})" + (f" - {reason}" if reason else "")
