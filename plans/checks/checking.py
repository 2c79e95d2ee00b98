"""Running a completion check: call the checker, then decide from its output.

1. Remove the decision file, so that an old one never decides.
2. Run the checker under the id of this check: a tool, an allow-listed command, or a model.
3. Decide from the decision file and the output, with `resolve_completion_decision`.

Needs no database; plans.checks.rows stores the outcome.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostics.redaction.redactor import redact
from failsoft.completion import (
    CheckDecision,
    CheckVerdict,
    DecisionSource,
    UndecidedCause,
    resolve_completion_decision,
)
from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import undecidable
from failsoft.json_values import JSON
from failsoft.plans.execution import CallContext
from plans.checks import commands, workspaces
from plans.tools.registry import call_tool, find_tool

CHECK_ID_NAMES = ("ROBOPPI_COMPLETION_CHECK_ID", "FAILSOFT_COMPLETION_CHECK_ID")
DECISION_FILE_NAME = "FAILSOFT_DECISION_FILE"
ITERATION_NAME = "FAILSOFT_ITERATION"
REASON_BYTES = 1024


class CheckerFailedError(Exception):
    """the checker itself crashed: only this fails the loop"""


class NotAskedError(Exception):
    """the checker may not be asked now: nothing was checked"""


@dataclass(frozen=True, slots=True)
class CheckedWork:
    """The subject of a check: the work of one iteration, redacted.

    `workspace` names the loop's folder where the check names none. Without a `project_id` the
    workspace is shared by all that have none.
    """

    workspace: str
    goal: str
    iteration: int
    results: Sequence[JSON] = ()
    task_status: str | None = None
    project_id: int | None = None


@dataclass(frozen=True, slots=True)
class CheckerOutput:
    """The output of a checker; its decision file is separate."""

    output: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    verdict: CheckVerdict
    output: str

    def shown(self) -> dict[str, Any]:
        """Return the decision for display; text of the checker is redacted."""
        verdict = self.verdict
        return {
            "decision": verdict.decision.value,
            "source": verdict.source.value,
            "check_id_match": verdict.check_id_match,
            "reason": redact(verdict.reason, REASON_BYTES) if verdict.reason else None,
            "reasons": [redact(text) for text in verdict.reasons],
            "fingerprints": [redact(text) for text in verdict.fingerprints],
        }


AskModel = Callable[[CheckSpec, CheckedWork, str], CheckerOutput]


def run_check(
    spec: CheckSpec, subject: CheckedWork, check_id: str, ask_model: AskModel | None = None
) -> CheckOutcome:
    """Run a checker and decide; CheckerFailedError when it crashed.

    `ask_model` runs checks of kind model.
    """
    check = _Check(spec, subject, check_id)
    try:
        check.clear()
        checker_output = check.run_checker(ask_model)
    except workspaces.WorkspaceError as error:
        raise CheckerFailedError(str(error)) from None
    return CheckOutcome(check.decide(checker_output), checker_output.output)


class _Check:
    def __init__(self, spec: CheckSpec, subject: CheckedWork, check_id: str) -> None:
        self.spec = spec
        self.subject = subject
        self.check_id = check_id
        self.workspace = workspaces.workspace_of(
            subject.project_id, spec.workspace or subject.workspace
        )
        self.file: Path | None = None

    def clear(self) -> None:
        if self.spec.decision_file is not None:
            self.file = workspaces.clear_decision_file(self.workspace, self.spec.decision_file)

    def run_checker(self, ask_model: AskModel | None) -> CheckerOutput:
        match self.spec.kind:
            case "tool":
                return self._call_tool()
            case "command":
                return self._run_command()
        if ask_model is None:
            raise CheckerFailedError("no model is available here")
        return ask_model(self.spec, self.subject, self.check_id)

    def decide(self, checker_output: CheckerOutput) -> CheckVerdict:
        file = None
        if self.spec.decision_file is not None:
            try:
                file = workspaces.read_decision_file(self.workspace, self.spec.decision_file)
            except workspaces.UnreadableFileError as error:
                return undecidable(
                    DecisionSource.FILE_TEXT, UndecidedCause.UNREADABLE_FILE, str(error)
                )
        return resolve_completion_decision(
            file, checker_output.output, self.check_id, output_is_cut=checker_output.is_cut
        )

    def _placeholders(self) -> dict[str, str]:
        return {
            "check_id": self.check_id,
            "decision_file": str(self.file or ""),
            "iteration": str(self.subject.iteration),
        }

    def _document(self) -> dict[str, Any]:
        return {
            "check_id": self.check_id,
            "decision_file": str(self.file) if self.file else None,
            "iteration": self.subject.iteration,
            "goal": self.subject.goal,
            "task_status": self.subject.task_status,
            "results": list(self.subject.results),
        }

    def _call_tool(self) -> CheckerOutput:
        name = self.spec.tool or ""
        tool = find_tool(name)
        if tool is None:
            raise CheckerFailedError(f"the tool {name} is not registered")
        properties = tool.arguments.schema().get("properties", {})
        fields = {key: value for key, value in self._document().items() if key in properties}
        args = {**fields, **fill_places(self.spec.args, self._placeholders())}
        context = CallContext(idempotency_key=self.check_id, project_id=self.subject.project_id)
        try:
            return CheckerOutput(_as_text(call_tool(name, args, context)))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            message = str(error) or type(error).__name__
            raise CheckerFailedError(f"{name}: {message}") from None

    def _run_command(self) -> CheckerOutput:
        name = self.spec.command or ""
        environment = dict.fromkeys(CHECK_ID_NAMES, self.check_id)
        environment[ITERATION_NAME] = str(self.subject.iteration)
        if self.file is not None:
            environment[DECISION_FILE_NAME] = str(self.file)
        try:
            result = commands.run_command(
                name,
                self._placeholders(),
                json.dumps(self._document()).encode(),
                workspaces.workspace_path(self.workspace),
                environment,
                self.spec.timeout_seconds,
            )
        except commands.UnknownCommandError:
            allowed_names = ", ".join(commands.command_names()) or "none"
            raise CheckerFailedError(
                f"command {name} is not allowed; allowed: {allowed_names}"
            ) from None
        except OSError as error:
            raise CheckerFailedError(f"{name}: {error.strerror}") from None
        self._check_for_crash(result)
        return CheckerOutput(result.output, result.is_cut)

    def _check_for_crash(self, result: commands.CommandResult) -> None:
        """Raise for a crash: a signal, a timeout, or an exit code without an INCOMPLETE."""
        if result.code == 0:
            return
        if result.code is not None and result.code > 0:
            verdict = self.decide(CheckerOutput(result.output, result.is_cut))
            if verdict.decision is CheckDecision.INCOMPLETE:
                return
        if result.code is None:
            ending = f"no answer within {self.spec.timeout_seconds} s"
        elif result.code < 0:
            ending = f"ended by signal {-result.code}"
        else:
            ending = f"exit code {result.code} without a decision against the work"
        last_line = next(iter(result.error.strip().splitlines()[-1:]), "")
        raise CheckerFailedError(
            f"{self.spec.command}: {(f'{ending}: {last_line}' if last_line else ending)}"
        )


def fill_places(value: Any, placeholders: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """Return a JSON value with the `${name}` placeholders of its texts filled."""
    if isinstance(value, str):
        return commands.fill(value, placeholders)
    if isinstance(value, list):
        return [fill_places(item, placeholders) for item in value]
    if isinstance(value, dict):
        return {key: fill_places(item, placeholders) for key, item in value.items()}
    return value


def _as_text(output: object) -> str:
    """Return the output of a tool as text; `{"text": ...}` is unwrapped."""
    if isinstance(output, str):
        return output
    if isinstance(output, dict) and list(output) == ["text"]:
        return str(output["text"])
    return json.dumps(output, ensure_ascii=False, default=str)
