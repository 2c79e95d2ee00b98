"""`manage.py run_plan FILE`: execute a plan, here or on the workers.

The runner `inline` executes it in this process, without a database. With `distributed` the
run is stored, and the workers of the installation execute it.
"""

import json
import sys
import time
from argparse import ArgumentParser
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError

from diagnostics.accounts.projects import DEFAULT_SLUG
from diagnostics.management import print_json, require_project
from diagnostics.redaction.redactor import redact, redact_json
from failsoft.command import describe_fault, read_document
from failsoft.parsing.strict import JsonTextError
from failsoft.plans.contract import CONTRACT_VERSION, MAX_PAYLOAD_BYTES, TaskStatus
from failsoft.plans.execution import Seams, execute
from failsoft.plans.validation import validate_payload
from plans.bodies import describe_violations
from plans.models.run import Run
from plans.runs.records import results_of
from plans.runs.submission import submit_run
from plans.tools.registry import call_tool

_REFUSED = 2
_SHOWN_CHARACTERS = 200
_POLL_SECONDS = 0.1


class Command(BaseCommand):
    """Validate, execute, print; exit 0 when COMPLETED, 1 when not, 2 when refused."""

    help = "Execute a plan, in this process or on the workers, and print its results."
    # The inline runner needs neither a database nor the checks of the installation.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="JSON payload; - for stdin")
        parser.add_argument("--json", action="store_true", help="print JSON only")
        parser.add_argument(
            "--force", action="store_true", help="execute an invalid plan as far as possible"
        )
        parser.add_argument(
            "--runner",
            choices=Run.Runner.values,
            default=Run.Runner.INLINE.value,
            help="inline: in this process (the default); distributed: on the workers",
        )
        parser.add_argument(
            "--strict-degraded",
            action="store_true",
            help="skip steps that depend on a degraded output",
        )
        parser.add_argument("--project", default=DEFAULT_SLUG, help="distributed: slug")
        parser.add_argument(
            "--timeout",
            type=float,
            default=600.0,
            metavar="SECONDS",
            help="distributed: how long to wait for the end of the run (600)",
        )

    def handle(self, *args: object, **options: Any) -> None:
        as_json = options["json"]
        try:
            payload, text = read_document(options["file"], MAX_PAYLOAD_BYTES)
        except JsonTextError as error:
            fault = error.as_dict() | {"message": redact(error.message)}
            self._refuse([fault], as_json=as_json)
        violations = [] if options["force"] else validate_payload(payload)
        if violations:
            self._refuse(describe_violations(text, violations), as_json=as_json)
        results = _run(payload, options)
        self._show(results, as_json=as_json)
        sys.exit(0 if results[-1]["task_status"] == TaskStatus.COMPLETED else 1)

    def _refuse(self, faults: list[dict[str, Any]], *, as_json: bool) -> NoReturn:
        if as_json:
            print_json(self, {"contract_version": CONTRACT_VERSION, "errors": faults})
        else:
            self.stderr.write("Nothing was run.")
            for fault in faults:
                self.stderr.write(describe_fault(fault))
        sys.exit(_REFUSED)

    def _show(self, results: list[dict[str, Any]], *, as_json: bool) -> None:
        if as_json:
            print_json(self, {"contract_version": CONTRACT_VERSION, "results": results})
            return
        width = max(len(row["step_id"]) for row in results)
        for row in results[:-1]:
            self.stdout.write(_line(row, width))
        meta = results[-1]
        counts = ", ".join(f"{count} {name}" for name, count in meta["stats"].items())
        self.stdout.write(f"{meta['task_status']}: {counts.replace('_', ' ')}")
        if meta["reason"]:
            self.stdout.write(meta["reason"])


def _run(payload: object, options: dict[str, Any]) -> list[dict[str, Any]]:
    if options["runner"] == Run.Runner.DISTRIBUTED:
        run = submit_run(
            require_project(options["project"]).pk,
            payload,
            None,
            runner=Run.Runner.DISTRIBUTED,
            strict_degraded=options["strict_degraded"],
            force=options["force"],
        )
        give_up_at = time.monotonic() + options["timeout"]
        while run.meta is None:
            if time.monotonic() > give_up_at:
                reason = run.refused_reason or "Are workers of the queue steps running?"
                raise CommandError(
                    f"Run {run.pk} has not ended within {options['timeout']:g} s. {reason}"
                )
            time.sleep(_POLL_SECONDS)
            run.refresh_from_db()
        return results_of(run)
    seams = Seams(
        call_tool,
        redact=redact,
        redact_json=redact_json,
        strict_degraded=options["strict_degraded"],
    )
    return execute(payload, seams)


def _line(row: dict[str, Any], width: int) -> str:
    state = "skipped" if row["skipped"] else "ok" if row["ok"] else "failed"
    text = row["error"] or row["reason"]
    if row["ok"]:
        text = json.dumps(row["output"], ensure_ascii=False)
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "..."
    return f"{row['step_id']:<{width}}  {state:<7}  {row['tool'] or '-'}  {text}"
