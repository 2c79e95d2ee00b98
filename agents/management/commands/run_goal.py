"""`manage.py run_goal FILE`: run a workflow file on the running Failsoft or in this process."""

import sys
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from agents.cycle.workflows import NeedsStackError, decision_line, run_here
from agents.goals.records import goal_record
from agents.goals.requests import RequestRefusedError
from agents.goals.submission import submit_goal
from agents.goals.workflow_files import Located, Workflow, WorkflowError, read_workflow
from agents.management import EXIT_CODES, show_goal, wait_for
from diagnostics.accounts.projects import DEFAULT_SLUG
from diagnostics.management import print_json, require_project
from diagnostics.redaction.redactor import redact

REFUSED = 2
HERE = "This workflow runs in this process; nothing is stored."
NEEDED = (
    "This workflow calls a model, which needs a running Failsoft: start it with "
    "`make run`, or give the workflow steps of its own."
)


class Command(BaseCommand):
    """Run; exit 0 completed, 1 failed or cancelled, 2 refused, 3 waiting for the user."""

    help = "Run a workflow file (YAML): its goal, its steps, its completion check."
    # A workflow that contains its steps runs without a database.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the workflow; - for stdin")
        parser.add_argument("--project", default=DEFAULT_SLUG, help="slug of the project")
        parser.add_argument("--in-process", action="store_true", help="run here, store nothing")
        parser.add_argument("--json", action="store_true", help="print JSON only")

    def handle(self, *args: object, **options: Any) -> None:
        as_json = options["json"]
        try:
            workflow = read_workflow(_read(options["file"]))
        except WorkflowError as error:
            self._refuse(error.errors, as_json=as_json)
        if options["in_process"] or not _has_stack():
            self._run_here(workflow, as_json=as_json)
        self._submit(workflow, options["project"], as_json=as_json)

    def _run_here(self, workflow: Workflow, *, as_json: bool) -> NoReturn:
        self.stderr.write(HERE)
        report = self.stderr.write if as_json else self.stdout.write
        try:
            result = run_here(workflow, report)
        except NeedsStackError:
            raise CommandError(NEEDED, returncode=REFUSED) from None
        if as_json:
            print_json(self, asdict(result))
        else:
            self.stdout.write(f"{result.status}  {workflow.name}")
            if result.message:
                self.stdout.write(result.message)
        sys.exit(EXIT_CODES[result.status])

    def _submit(self, workflow: Workflow, slug: str, *, as_json: bool) -> NoReturn:
        project = require_project(slug)
        try:
            goal = submit_goal(project.pk, workflow.body, source="workflow")
        except RequestRefusedError as error:
            faults = [Located(e.path, e.code, e.message, 1, 1) for e in error.errors]
            self._refuse(faults, as_json=as_json)
        record = goal_record(wait_for(goal))
        if as_json:
            print_json(self, record)
        else:
            for decision in record["decisions"]:
                line = f"iteration {decision['iteration']}: {decision_line(decision)}"
                self.stdout.write(line)
            show_goal(self, record)
        sys.exit(EXIT_CODES[record["status"]])

    def _refuse(self, errors: list[Located], *, as_json: bool) -> NoReturn:
        faults = [{**e.as_dict(), "message": redact(e.message)} for e in errors]
        if as_json:
            print_json(self, {"errors": faults})
        for fault in faults if not as_json else ():
            place = f"line {fault['line']}, column {fault['column']}"
            message = " ".join(filter(None, (fault["path"], fault["message"])))
            self.stderr.write(f"{place}: {message}")
        sys.exit(REFUSED)


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "this is not UTF-8"
        fault = Located("", "unreadable", f"{name}: {reason}", 1, 1)
        raise WorkflowError([fault]) from None


def _has_stack() -> bool:
    """Whether there is a database; CommandError if one is configured but unavailable."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        if settings.CONFIGURATION.database_url:
            raise CommandError(f"The database is unavailable: {error}") from None
        return False
    return True
