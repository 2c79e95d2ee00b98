"""Asking a checker whether the work is complete, and deciding from what it left.

1. Clear the decision file: a left-over can never decide.
2. Ask the checker under this check's id: a tool, an allow-listed command, or a model.
3. Decide from the decision file and the output, by the one resolver there is.

Needs no database; plans.checks.rows keeps what came of it.
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
from plans.checks.commands import (
    CommandResult,
    UnknownCommandError,
    command_names,
    fill,
    run_command,
)
from plans.checks.workspaces import (
    UnreadableFileError,
    WorkspaceError,
    clear_decision_file,
    read_decision_file,
    workspace_of,
    workspace_path,
)
from plans.tools.registry import call_tool, find_tool

CHECK_ID_NAMES = ("ROBOPPI_COMPLETION_CHECK_ID", "FAILSOFT_COMPLETION_CHECK_ID")
DECISION_FILE_NAME = "FAILSOFT_DECISION_FILE"
ITERATION_NAME = "FAILSOFT_ITERATION"


REASON_BYTES = 1024


class CheckerFailedError(Exception):
    """the checker itself crashed: only this fails the loop"""


@dataclass(frozen=True, slots=True)
class CheckedWork:
    """What is checked: the work of one iteration, as it may be shown.

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
    """What a checker left besides its decision file."""

    output: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The decision, and the output it may have come from."""

    verdict: CheckVerdict
    output: str

    def shown(self) -> dict[str, Any]:
        """Return the decision as it may be shown: what a checker wrote is masked."""
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
    """Ask and decide; CheckerFailedError when the checker crashed.

    `ask_model` is asked by checks of kind model, with the check's id.
    """
    ask = _Ask(spec, subject, check_id)
    try:
        ask.clear()
        left = ask.checker(ask_model)
    except WorkspaceError as error:
        raise CheckerFailedError(str(error)) from None
    return CheckOutcome(ask.decide(left), left.output)


class _Ask:
    """One check on its way."""

    def __init__(self, spec: CheckSpec, subject: CheckedWork, check_id: str) -> None:
        self.spec = spec
        self.subject = subject
        self.check_id = check_id
        self.workspace = workspace_of(subject.project_id, spec.workspace or subject.workspace)
        self.file: Path | None = None

    def clear(self) -> None:
        if self.spec.decision_file is not None:
            self.file = clear_decision_file(self.workspace, self.spec.decision_file)

    def checker(self, ask_model: AskModel | None) -> CheckerOutput:
        match self.spec.kind:
            case "tool":
                return self._call_tool()
            case "command":
                return self._run_command()
        if ask_model is None:
            raise CheckerFailedError("no model is available here")
        return ask_model(self.spec, self.subject, self.check_id)

    def decide(self, left: CheckerOutput) -> CheckVerdict:
        file = None
        if self.spec.decision_file is not None:
            try:
                file = read_decision_file(self.workspace, self.spec.decision_file)
            except UnreadableFileError as error:
                return undecidable(
                    DecisionSource.FILE_TEXT, UndecidedCause.UNREADABLE_FILE, str(error)
                )
        return resolve_completion_decision(
            file, left.output, self.check_id, output_is_cut=left.is_cut
        )

    def _filled(self) -> dict[str, str]:
        """What stands in the `${name}` places of arguments."""
        return {
            "check_id": self.check_id,
            "decision_file": str(self.file or ""),
            "iteration": str(self.subject.iteration),
        }

    def _document(self) -> dict[str, Any]:
        """What a checker is told."""
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
        found = find_tool(name)
        if found is None:
            raise CheckerFailedError(f"the tool {name} is not registered")
        wanted = found.arguments.schema().get("properties", {})
        told = {k: v for k, v in self._document().items() if k in wanted}
        args = {**told, **fill_places(self.spec.args, self._filled())}
        context = CallContext(idempotency_key=self.check_id, project_id=self.subject.project_id)
        try:
            return CheckerOutput(_as_text(call_tool(name, args, context)))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            told_as = str(error) or type(error).__name__
            raise CheckerFailedError(f"{name}: {told_as}") from None

    def _run_command(self) -> CheckerOutput:
        name = self.spec.command or ""
        environment = dict.fromkeys(CHECK_ID_NAMES, self.check_id)
        environment[ITERATION_NAME] = str(self.subject.iteration)
        if self.file is not None:
            environment[DECISION_FILE_NAME] = str(self.file)
        try:
            ran = run_command(
                name,
                self._filled(),
                json.dumps(self._document()).encode(),
                workspace_path(self.workspace),
                environment,
                self.spec.timeout_seconds,
            )
        except UnknownCommandError:
            known = ", ".join(command_names()) or "none"
            raise CheckerFailedError(f"command {name} is not allowed; allowed: {known}") from None
        except OSError as error:
            raise CheckerFailedError(f"{name}: {error.strerror}") from None
        self._believe(ran)
        return CheckerOutput(ran.output, ran.is_cut)

    def _believe(self, ran: CommandResult) -> None:
        """Tell a crash: a signal, a timeout, or an exit code without an INCOMPLETE."""
        if ran.code == 0:
            return
        if ran.code is not None and ran.code > 0:
            verdict = self.decide(CheckerOutput(ran.output, ran.is_cut))
            if verdict.decision is CheckDecision.INCOMPLETE:
                return
        raise CheckerFailedError(f"{self.spec.command}: {_ending(ran, self.spec.timeout_seconds)}")


def fill_places(value: Any, filled: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """Put values in the `${name}` places of every text of a JSON value."""
    if isinstance(value, str):
        return fill(value, filled)
    if isinstance(value, list):
        return [fill_places(item, filled) for item in value]
    if isinstance(value, dict):
        return {key: fill_places(item, filled) for key, item in value.items()}
    return value


def _as_text(output: object) -> str:
    """A tool's output as a checker's text; an object that is only a text is that text."""
    if isinstance(output, str):
        return output
    if isinstance(output, dict) and list(output) == ["text"]:
        return str(output["text"])
    return json.dumps(output, ensure_ascii=False, default=str)


def _ending(ran: CommandResult, timeout_seconds: int) -> str:
    if ran.code is None:
        how = f"no answer within {timeout_seconds} s"
    elif ran.code < 0:
        how = f"ended by signal {-ran.code}"
    else:
        how = f"exit code {ran.code} without a decision against the work"
    said = ran.error.strip().splitlines()[-1:] or [""]
    return f"{how}: {said[0]}" if said[0] else how
