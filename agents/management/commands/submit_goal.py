"""`manage.py submit_goal "..."`: queue a goal, and with --wait wait until it has ended."""

import sys
from argparse import ArgumentParser
from typing import Any, NoReturn

from django.core.management.base import BaseCommand

from agents.goals.records import goal_record, goal_summary
from agents.goals.requests import RequestRefusedError
from agents.goals.submission import submit_goal
from agents.management import EXIT_CODES, show_goal, wait_for
from diagnostics.accounts.projects import DEFAULT_SLUG
from diagnostics.management import print_json, require_project

REFUSED = 2


class Command(BaseCommand):
    """Submit; exit 0 completed, 1 failed or cancelled, 2 refused, 3 waiting for the user."""

    help = "Submit a goal; with --wait, wait until it ends or needs an answer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("goal", help="what to achieve")
        parser.add_argument("--project", default=DEFAULT_SLUG, help="slug of the project")
        parser.add_argument("--provider", help="name of the provider")
        parser.add_argument("--model", help="name of the model")
        parser.add_argument("--mode", default="plan", help="plan, next_step or actions")
        parser.add_argument("--toolset", help="toolset for mode actions, such as entries")
        parser.add_argument("--tool", action="append", dest="tools", help="offer only this tool")
        parser.add_argument(
            *("--max-attempts", "--max-retries"), type=int, help="calls per cycle, 1 to 5"
        )
        parser.add_argument("--max-iterations", type=int, default=3, help="maximum cycles")
        parser.add_argument("--wait", action="store_true", help="wait for the end")
        parser.add_argument("--json", action="store_true", help="print JSON only")

    def handle(self, *args: object, **options: Any) -> None:
        project = require_project(options["project"])
        try:
            names = ("goal", "mode", "provider", "model", "tools", "toolset", "max_iterations")
            body = {name: options[name] for name in names}
            if options["max_attempts"] is not None:
                body["retry"] = {"max_attempts": options["max_attempts"]}
            goal = submit_goal(project.pk, body)
        except RequestRefusedError as error:
            self._refuse(error, as_json=options["json"])
        if not options["wait"]:
            self._show(goal_summary(goal), as_json=options["json"])
            return
        ended = wait_for(goal)
        self._show(goal_record(ended), as_json=options["json"])
        sys.exit(EXIT_CODES[ended.status])

    def _refuse(self, error: RequestRefusedError, *, as_json: bool) -> NoReturn:
        if as_json:
            print_json(self, {"errors": [item.as_dict() for item in error.errors]})
        else:
            for item in error.errors:
                self.stderr.write(f"{item.path or 'goal'}: {item.message}")
        sys.exit(REFUSED)

    def _show(self, record: dict[str, Any], *, as_json: bool) -> None:
        if as_json:
            print_json(self, record)
            return
        show_goal(self, record, map(_line, record.get("attempts", [])))
        for text in record["help"]:
            self.stdout.write(text)


def _line(attempt: dict[str, Any]) -> str:
    place = f"cycle {attempt['cycle']} attempt {attempt['attempt']}"
    error = f" ({attempt['error_type']})" if attempt["error_type"] else ""
    details = f"{attempt['latency_ms']} ms, {attempt['output_mode']}"
    return f"  {place}: {attempt['state']}{error}, {details}"
