"""Text that models, agents and people send is shown, never executed (S13)."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Dialog

from agents.demo.loading import load
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.models import Membership, Project
from plans.models.run import Run, RunStep
from tests.browser.conftest import Reader
from tests.browser.poison import poison
from tests.console import make_attempt, make_goal, make_meta, make_model, make_run, post_runs
from tests.console_pages import console_pages

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PAYLOADS = [
    "<script>pwned=1</script>",
    "</script><script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "<svg onload=pwned=1>",
    "<svg><script>pwned=1</script></svg>",
    "<svg><animate onbegin=pwned=1 attributeName=x dur=1s>",
    "<body onload=pwned=1>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<iframe src=javascript:parent.pwned=1>",
    "<a href=javascript:pwned=1 autofocus onfocus=pwned=1>x</a>",
    "<input autofocus onfocus=pwned=1>",
    "<select autofocus onfocus=pwned=1>",
    "<textarea autofocus onfocus=pwned=1>",
    "<details open ontoggle=pwned=1>",
    "<video><source onerror=pwned=1></video>",
    "<audio src=x onerror=pwned=1>",
    "<object data=javascript:pwned=1>",
    "<embed src=javascript:pwned=1>",
    "<math href=javascript:pwned=1>x</math>",
    "<marquee onstart=pwned=1>",
    "<style>@import 'javascript:pwned=1'</style>",
    "<link rel=stylesheet href=javascript:pwned=1>",
    "<meta http-equiv=refresh content='0;url=javascript:pwned=1'>",
    "<base href=//evil.invalid/>",
    "<form action=javascript:pwned=1><button autofocus>x</button></form>",
    "<div hx-get=/ hx-trigger=load hx-on::load=pwned=1>",
    "<div hx-on:click=pwned=1 hx-trigger='load[pwned=1]' hx-get=/>",
    "<div data-poll hx-get=/ hx-vals='js:{a:pwned=1}' hx-trigger=load>",
    '" onmouseover=pwned=1 x="',
    "' onmouseover=pwned=1 x='",
    '"><script>pwned=1</script>',
    "'><img src=x onerror=pwned=1>",
    "--><script>pwned=1</script>",
    "]]><script>pwned=1</script>",
    "{{ 7|add:7 }}{% debug %}",
    "${pwned=1}",
    "javascript:pwned=1",
    "&lt;script&gt;pwned=1&lt;/script&gt;",
    "\u202e<script>pwned=1</script>\u202c",
    "<scr\u200bipt>pwned=1</scr\u200bipt><ScRiPt >pwned=1</sCrIpT >",
]


def make_hostile_goal(project: Project, number: int, text: str) -> Goal:
    """Put a payload into every field of a goal that a page shows."""
    item = {"path": text, "code": text, "message": text, "line": 1, "column": 2}
    goal = make_goal(
        project,
        f"{number} {text}"[:200],
        text_preview=text,
        status="failed",
        outcome="degraded",
        user_text=text,
        help=[text],
        plan_source=text[:16],
        environment=text[:100],
        source=text[:100],
        constraints=[{"text": text, "optional": True}],
        retry={text: text},
        budget={text: text},
        last_validation_error={text: text},
    )
    make_attempt(
        goal,
        2,
        node=text[:64],
        provider=text[:100],
        model=text[:200],
        error_type=text[:32],
        errors=[item, text],
        preview=f"{text}\n{text}",
        repairs=[{"kind": text, "line": 1, "column": 1, "lossless": False}],
        coerced=[{"kind": text, "path": text, "line": 1, "column": 1}],
        finish_reason=text[:64],
        feedback=text,
        dropped_constraints=[{"text": text}],
        simplified=True,
    )
    return goal


def make_hostile_run(goal: Goal, text: str) -> None:
    """Put a payload into every field of a run and its steps."""
    step = {
        "step_id": text,
        "title": text,
        "tool": text,
        "dependencies": [text, "other"],
        "ok": False,
        "skipped": False,
        "reason": text,
        "error": text,
        "output": {text: [text]},
    }
    meta = make_meta("FAILED", 0, 2, 0)
    lists = {"blocked_steps": [text], "failed_steps": [text], "reason": text}
    run = make_run(goal, [step, {**step, "step_id": "other"}], {**meta, **lists})
    Run.objects.filter(pk=run.pk).update(
        contract_version=text[:32], contract_violations=[{"path": text, "message": text}]
    )
    assert RunStep.objects.filter(run=run).count() == 2


@pytest.fixture
def hostile_goals(project: Project) -> list[Goal]:
    """Forty payloads in forty goals, series and names at once."""
    goals = []
    for number, text in enumerate(PAYLOADS):
        goal = make_hostile_goal(project, number, text)
        make_hostile_run(goal, text)
        at = clock.now() - timedelta(minutes=number)
        names = {"provider": text, "model": text, "environment": text}
        post_runs(project, 20, 5, at, correlation_id=f"{number} {text}", **names)
        goals.append(goal)
    Project.objects.update(name=PAYLOADS[0])
    make_model(project, PAYLOADS[2])
    return goals


@pytest.fixture
def hostile_pages(hostile_goals: list[Goal], person: User) -> list[str]:
    """Every page, over rows whose every text is a payload."""
    project = hostile_goals[0].project
    Membership.objects.filter(user=person).update(role=Membership.Role.ADMIN)
    load(project, clock.now(), volume=0.02)
    assert poison(PAYLOADS) > 100
    client = Client()
    client.force_login(person)
    return console_pages(client, project)


def test_s13_no_payload_of_forty_is_executed_on_any_page(
    hostile_goals: list[Goal], hostile_pages: list[str], reader: Reader
) -> None:
    page = reader.page
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    paths = [*hostile_pages, "/?range=7d"]
    paths += [f"/runs/{goal.pk}/" for goal in hostile_goals]
    for path in paths:
        reader.open(path)
        page.wait_for_timeout(30)
        assert page.evaluate("typeof pwned") == "undefined", path
        reader.check()
    assert dialogs == []


def test_s13_payloads_in_the_query_are_not_executed(reader: Reader, project: Project) -> None:
    page = reader.page
    for text in PAYLOADS:
        for name, path in (
            ("model", "/"),
            ("range", "/"),
            ("q", "/runs/"),
            ("reference", "/find/"),
        ):
            page.goto(f"{reader.base_url}{path}?" + _encoded(name, text))
            assert page.evaluate("typeof pwned") == "undefined", (name, text)
    reader.check()


def _encoded(name: str, text: str) -> str:
    return f"{name}=" + "".join(f"%{byte:02x}" for byte in text.encode())
