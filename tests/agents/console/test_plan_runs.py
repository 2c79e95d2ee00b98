"""The pages of runs: the list, the graph, the steps, and what a person can do."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from agents.console.plan_run_page import PAGE
from diagnostics.accounts.models import Membership, Project
from failsoft.plans.results import validate_results
from plans.models.run import Run, RunStep
from plans.runs.running import execute_run
from plans.runs.submission import submit_run
from tests.agents.console.conftest import Read
from tests.console import make_goal

MOST_BYTES = 60 * 1024
MOST_NODES = 1_500


def plan_of(size: int, width: int = 1) -> dict[str, Any]:
    """A plan of echoing steps; each waits for the one `width` before it."""
    return {
        "steps": [
            {
                "step_id": f"step_{at + 1}",
                "title": f"Title {at + 1}",
                "dependencies": [f"step_{at + 1 - width}"] if at >= width else [],
                "tool": {"name": "echo", "args": {"number": at}},
            }
            for at in range(size)
        ]
    }


def ended(project: Project, plan: dict[str, Any], name: str = "mine") -> Run:
    run = submit_run(project.pk, plan, name)
    execute_run(run.pk)
    run.refresh_from_db()
    return run


@pytest.fixture
def failed(project: Project) -> Run:
    """The second step of four fails; the third was skipped because of it."""
    plan = plan_of(4)
    plan["steps"][1]["tool"] = {"name": "fail", "args": {"message": "declined"}}
    plan["steps"][3]["dependencies"] = []
    return ended(project, plan)


def forget(run: Run, position: int = 1) -> None:
    """Let nobody know what became of a step."""
    RunStep.objects.filter(run=run, position=position).update(
        ok=False, reason="unknown_outcome", error="Nobody knows.", output=None
    )


def test_a_run_without_a_goal_is_listed_and_shown(
    project: Project, failed: Run, read: Read
) -> None:
    assert f'href="/plan-runs/{failed.pk}/"' in read("/plan-runs/")
    html = read(f"/plan-runs/{failed.pk}/")
    assert "Failed: 2 of 4 steps ok, 1 failed, 1 skipped" in html
    assert 'href="?step=1#step">step_2</a>' in html
    assert "FailedOnPurposeError: declined" in html
    assert "because of" in html
    assert "&quot;message&quot;: &quot;declined&quot;" in html


def test_a_run_of_a_goal_and_its_goal_lead_to_each_other(project: Project, read: Read) -> None:
    make_goal(project, "mine")
    run = ended(project, plan_of(1))
    assert 'href="/runs/mine/"' in read(f"/plan-runs/{run.pk}/")
    assert f'href="/plan-runs/{run.pk}/"' in read("/runs/mine/")


def test_the_graph_marks_the_critical_path_and_the_root_cause(failed: Run, read: Read) -> None:
    last = failed.steps.filter(position=1)
    last.update(ended_at=failed.created_at + timedelta(days=1))
    html = read(f"/plan-runs/{failed.pk}/")
    assert "step_2 failed, root cause, on the critical path after step_1" in html
    assert 'class="box bad root critical"' in html
    assert 'class="edge good critical"' in html
    assert "Critical path:" in html


def test_a_step_is_shown_in_full(failed: Run, read: Read) -> None:
    html = read(f"/plan-runs/{failed.pk}/", step=0)
    assert f"{failed.pk}:1:1" in html
    assert "&quot;number&quot;: 0" in html
    assert 'id="step"' in read(f"/plan-runs/{failed.pk}/", step=3)
    for hostile in ("99", "-1", "²", "9" * 30, "x"):
        query = {"step": hostile, "from": hostile, "show": hostile}
        assert "Failed: 2 of 4" in read(f"/plan-runs/{failed.pk}/", **query)


def test_secrets_in_arguments_are_not_shown(project: Project, read: Read) -> None:
    plan = plan_of(1)
    plan["steps"][0]["tool"]["args"] = {"password": "open sesame"}
    run = ended(project, plan)
    html = read(f"/plan-runs/{run.pk}/", step=0)
    assert "REDACTED" in html
    assert "sesame" not in html


def test_results_are_downloaded_as_the_contract_has_them(failed: Run, client: Client) -> None:
    answer = client.get(f"/plan-runs/{failed.pk}/results.json")
    document = answer.json()
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert document["contract_version"] == failed.contract_version
    assert validate_results(document["results"]) == []


@pytest.mark.parametrize("path", ["", "results.json"])
def test_s20_foreign_and_unknown_runs_are_both_not_found(client: Client, path: str) -> None:
    other = Project.objects.create(slug="other", name="Other")
    run = ended(other, plan_of(1))
    assert client.get(f"/plan-runs/{run.pk}/{path}").status_code == 404
    unknown = str(run.pk).replace(str(run.pk)[:2], "ff", 1)
    assert client.get(f"/plan-runs/{unknown}/{path}").status_code == 404
    for action in ("cancel", "rerun", "resolve"):
        assert client.post(f"/plan-runs/{run.pk}/{action}/").status_code == 404


def test_a_viewer_sees_everything_and_does_nothing(
    project: Project, failed: Run, client: Client, read: Read
) -> None:
    forget(failed)
    Membership.objects.update(role="viewer")
    html = read(f"/plan-runs/{failed.pk}/")
    assert "1 step needing a decision" in html
    assert "Run again" not in html
    assert "It was done" not in html
    for action in ("cancel", "rerun", "resolve"):
        assert client.post(f"/plan-runs/{failed.pk}/{action}/").status_code == 403


def test_a_running_run_is_polled_and_can_be_cancelled(
    project: Project, client: Client, read: Read
) -> None:
    run = submit_run(project.pk, plan_of(2), "mine")
    html = read(f"/plan-runs/{run.pk}/")
    assert "data-poll" in html
    tag = client.get(f"/plan-runs/{run.pk}/").headers["ETag"]
    same = client.get(f"/plan-runs/{run.pk}/", headers={"If-None-Match": tag})
    assert same.status_code == 304
    client.post(f"/plan-runs/{run.pk}/cancel/")
    assert "cancelling" in read(f"/plan-runs/{run.pk}/")
    execute_run(run.pk)
    html = read(f"/plan-runs/{run.pk}/")
    assert "Partially completed: 0 of 2 steps ok, 2 skipped" in html
    assert "data-poll" not in html


def test_a_plan_is_run_again_from_one_step_on(failed: Run, client: Client, read: Read) -> None:
    answer = client.post(f"/plan-runs/{failed.pk}/rerun/", {"from": "1"})
    made = Run.objects.exclude(pk=failed.pk).get()
    assert answer.headers["Location"] == f"/plan-runs/{made.pk}/"
    assert (made.rerun_of, made.rerun_from, made.requested_by) == (failed, 1, "ann")
    assert "from step 2" in read(f"/plan-runs/{made.pk}/")
    assert f'href="/plan-runs/{made.pk}/"' in read(f"/plan-runs/{failed.pk}/")


def test_what_nobody_knows_is_decided_in_bulk(project: Project, client: Client, read: Read) -> None:
    run = ended(project, plan_of(3, width=3))
    forget(run, 0)
    forget(run, 2)
    assert "2 steps needing a decision" in read(f"/plan-runs/{run.pk}/")
    assert f'href="/plan-runs/{run.pk}/"' in read("/plan-runs/", undecided=1)
    client.post(f"/plan-runs/{run.pk}/resolve/", {"verdict": "done"})
    assert "Select at least one step" in read(f"/plan-runs/{run.pk}/")
    chosen = {"verdict": "done", "position": ["0", "2"]}
    client.post(f"/plan-runs/{run.pk}/resolve/", chosen)
    assert "2 steps decided" in read(f"/plan-runs/{run.pk}/")
    execute_run(run.pk)
    assert "Completed: 3 of 3 steps ok" in read(f"/plan-runs/{run.pk}/", step=0)
    assert "by ann" in read(f"/plan-runs/{run.pk}/", step=0)
    client.post(f"/plan-runs/{run.pk}/resolve/", chosen)
    assert "What became of step" in read(f"/plan-runs/{run.pk}/")


@pytest.mark.slow
def test_a_plan_of_ten_thousand_steps_is_shown_in_windows(
    project: Project, read: Read, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    plan = plan_of(10_000, width=40)
    for step in plan["steps"]:
        step |= {"tool": "echo", "title": "T"}
    run = submit_run(project.pk, plan, "large")
    RunStep.objects.filter(run=run).update(state="final", ok=False, skipped=True)
    Run.objects.filter(pk=run.pk).update(state="ended", task_status="PARTIAL")
    with django_assert_max_num_queries(20):
        html = read(f"/plan-runs/{run.pk}/", **{"from": 5_000})
    assert len(html.encode()) <= MOST_BYTES
    assert len(re.findall(r"<[a-z]", html)) <= MOST_NODES
    assert "step_5001" in html
    assert "from=5050#steps" in html
    assert "from=4950#steps" in html


def test_the_list_is_narrowed_and_paged(project: Project, read: Read, failed: Run) -> None:
    for number in range(PAGE + 2):
        submit_run(project.pk, plan_of(1), f"many-{number}")
    newest = read("/plan-runs/")
    assert f"many-{PAGE + 1}" in newest
    older = re.search(r'rel="next" href="\?before=([0-9a-f-]+)"', newest)
    assert older is not None
    assert ">mine</a>" in read("/plan-runs/", before=older[1])
    narrowed = read("/plan-runs/", status="FAILED")
    assert "many-" not in narrowed
    # The filter has the words of the list, the address the wire value.
    assert '<option value="FAILED" selected>Failed</option>' in narrowed
    assert ">mine</a>" in read("/plan-runs/", q=str(failed.pk))
    assert ">mine</a>" not in read("/plan-runs/", q="many")
    assert "No matching plan runs" in read("/plan-runs/", runner="distributed", q="\0nobody")


def test_nobody_is_shown_a_run_without_signing_in(failed: Run) -> None:
    answer = Client().get(f"/plan-runs/{failed.pk}/")
    assert answer.headers["Location"].startswith("/accounts/login/")


def test_the_addresses_of_before_lead_to_plan_runs(client: Client, failed: Run) -> None:
    for old, new in {
        f"/runs/{failed.pk}/?step=1": f"/plan-runs/{failed.pk}/?step=1",
        f"/runs/{failed.pk}/results.json": f"/plan-runs/{failed.pk}/results.json",
    }.items():
        assert client.get(old).headers["Location"] == new
