"""Every case of tests/contract/executions.json on real workers, beside the pure executor.

Prints the names of the cases whose results differ, and how many there were.
"""

import json
import time
from pathlib import Path
from typing import Any

import django

django.setup()

from diagnostics.accounts.models import Project  # noqa: E402 - after the settings
from diagnostics.redaction.redactor import redact, redact_json  # noqa: E402
from failsoft.plans.execution import Seams, execute  # noqa: E402
from plans.models.run import Run  # noqa: E402
from plans.runs.records import results_of  # noqa: E402
from plans.runs.submission import submit_run  # noqa: E402
from plans.tools.registry import call_tool  # noqa: E402

CASES = Path(__file__).resolve().parents[1] / "contract" / "executions.json"
END_SECONDS = 100


def main() -> None:
    """Submit everything to both runners, wait, compare."""
    project, _ = Project.objects.get_or_create(slug="agree", defaults={"name": "Agree"})
    cases = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
    cases = [case for case in cases if "stop" not in case]
    submitted = [
        (case, _submit(project, case, runner)) for case in cases for runner in Run.Runner.values
    ]
    give_up_at = time.monotonic() + END_SECONDS
    while Run.objects.filter(meta__isnull=True).exists() and time.monotonic() < give_up_at:
        time.sleep(0.2)
    for case, run in submitted:
        run.refresh_from_db()
        strict = case.get("strict_degraded", False)
        seams = Seams(call_tool, redact=redact, redact_json=redact_json, strict_degraded=strict)
        expected = json.dumps(execute(case["payload"], seams))
        if json.dumps(results_of(run)) != expected:
            print("differs:", run.runner, run.state, case["name"])  # noqa: T201 - read by the test
    print("compared", len(submitted))  # noqa: T201 - read by the test


def _submit(project: Project, case: dict[str, Any], runner: str) -> Run:
    strict = case.get("strict_degraded", False)
    return submit_run(
        project.pk, case["payload"], None, runner=runner, force=True, strict_degraded=strict
    )


if __name__ == "__main__":
    main()
