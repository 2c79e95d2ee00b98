"""One list of cases through the pure executor and both runners: the same to the byte."""

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from plans.models.run import Run
from plans.runs.records import results_of
from plans.tools import registry
from tests.plans.driving import run_through

_FOLDER = Path(__file__).resolve().parents[2] / "contract"
_CASES = json.loads((_FOLDER / "executions.json").read_text(encoding="utf-8"))["cases"]
_RUNNERS = ["inline", "distributed"]
# Until the deadline of a case that has one: the first call has begun by then on a busy machine.
_SECONDS_LEFT = 3.0


class AnyArgs(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The two tools that the cases speak of; after so many calls the run is stopped."""
    monkeypatch.setattr(registry, "_tools", {})
    wish: dict[str, Any] = {"after_calls": -1, "calls": 0}

    def count() -> None:
        wish["calls"] += 1
        if wish["calls"] == wish["after_calls"] and wish["reason"] == "cancelled":
            Run.objects.update(cancel_requested_at=DatabaseNow())
        elif wish["calls"] == wish["after_calls"]:
            # The distributed runner reads the row, the one in this process its own clock.
            Run.objects.update(deadline_at=DatabaseNow())
            if wish["runner"] == "inline":
                time.sleep(1.1 * _SECONDS_LEFT)

    def echo(args: AnyArgs) -> dict[str, Any]:
        count()
        return args.model_dump()

    def fail(args: AnyArgs) -> None:
        count()
        raise RuntimeError("failed on purpose")

    registry.tool("echo", AnyArgs, description="")(echo)
    registry.tool("fail", AnyArgs, description="")(fail)
    return wish


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


@pytest.mark.slow
@pytest.mark.parametrize("runner", _RUNNERS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in _CASES])
def test_s2_47_a_stored_run_has_the_results_of_the_case_to_the_byte(
    project: Project, stop: dict[str, Any], case: dict[str, Any], runner: str
) -> None:
    if wanted := case.get("stop"):
        if wanted["reason"] not in {"cancelled", "deadline_reached"}:
            pytest.skip("only the pure executor can be told this")
        stop |= {**wanted, "runner": runner}
    deadline = None
    if stop.get("reason") == "deadline_reached":
        deadline = clock.now() + timedelta(seconds=_SECONDS_LEFT)
    run = run_through(
        project.pk,
        case["payload"],
        runner,
        force=True,
        deadline_at=deadline,
        strict_degraded=case.get("strict_degraded", False),
    )
    assert _dump(results_of(run)) == _dump(case["results"])
    assert run.contract_violations == []
