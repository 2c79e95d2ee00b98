"""submit_goal, create_admin and first_run as they are typed."""

import json
import stat
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command

from agents.goals.models import Goal
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.models import ApiKey, Membership, Project
from tests.agents.conftest import ASK, FINISH, PLAN, Api, Planner, work_off

SLEEP = "agents.management.time.sleep"


def run(*words: str) -> tuple[int, str]:
    """Exit code and stdout of a command."""
    out = StringIO()
    try:
        call_command(*words, stdout=out, stderr=StringIO())
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def at_work(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> Planner:
    """A planner whose workers work while the command waits."""
    monkeypatch.setattr(SLEEP, lambda seconds: work_off())
    return planner


@pytest.mark.parametrize(
    ("replies", "words", "code", "status"),
    [
        ([PLAN], (), 0, "completed"),
        (["no", "no"], (), 1, "failed"),
        ([ASK], ("--mode", "next_step"), 3, "waiting_user"),
        (
            [FINISH],
            ("--mode", "next_step", "--provider", "fake", "--model", "fake-1"),
            0,
            "completed",
        ),
    ],
)
def test_wait_ends_with_the_goal(
    at_work: Planner, replies: list[str], words: tuple[str, ...], code: int, status: str
) -> None:
    at_work.will_say(*replies)

    found, printed = run("submit_goal", "Say hi", "--project", "lab", "--wait", "--json", *words)

    record: dict[str, Any] = json.loads(printed)
    assert (found, record["status"]) == (code, status)
    assert {"attempts", "events", "plan", "results"} <= set(record)


def test_a_cancelled_goal_ends_the_wait_with_1(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(seconds: float) -> None:
        Goal.objects.update(status=Goal.Status.CANCELLED)

    monkeypatch.setattr(SLEEP, cancel)

    assert run("submit_goal", "Say hi", "--project", "lab", "--wait", "--json")[0] == 1


@pytest.mark.parametrize("option", ["--max-attempts", "--max-retries"])
def test_both_names_set_the_number_of_calls(at_work: Planner, option: str) -> None:
    at_work.will_say({"text": "no", "repeat": True})

    run("submit_goal", "Say hi", "--project", "lab", "--wait", "--json", option, "3")

    assert at_work.calls == 3


def test_without_wait_the_goal_is_queued(planner: Planner) -> None:
    code, printed = run("submit_goal", "Say hi", "--project", "lab", "--json")

    assert code == 0
    assert json.loads(printed)["status"] == "queued"


def test_for_people_it_prints_lines(at_work: Planner) -> None:
    at_work.will_say("no", "no")

    _, printed = run("submit_goal", "Say hi", "--project", "lab", "--wait")

    assert "cycle 1 attempt 2: invalid (not_json)" in printed
    assert "internal planning error" in printed


def test_a_refused_goal_exits_with_2_and_the_field(planner: Planner) -> None:
    code, printed = run("submit_goal", "", "--project", "lab", "--json")

    assert code == 2
    assert json.loads(printed)["errors"][0]["path"] == "/goal"
    assert run("submit_goal", "", "--project", "lab") == (2, "")


def test_an_unknown_project_is_named(planner: Planner) -> None:
    with pytest.raises(CommandError, match="nowhere"):
        run("submit_goal", "hi", "--project", "nowhere")


def test_first_run_makes_everything_once(db: None, settings: Any, tmp_path: Path) -> None:
    settings.FAILSOFT_DATA_DIR = tmp_path
    settings.FAILSOFT_MODEL_URL = "http://127.0.0.1:9"
    settings.FAILSOFT_MODEL_KEY = ""

    run("first_run")
    secrets = {name: (tmp_path / name).read_text("utf-8") for name in ("admin-password", "api-key")}
    settings.FAILSOFT_MODEL_URL = "http://127.0.0.1:10"
    run("first_run")

    for name, text in secrets.items():
        assert (tmp_path / name).read_text("utf-8") == text
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert authenticate(username="admin", password=secrets["admin-password"].strip())
    assert Membership.objects.get().role == Membership.Role.ADMIN
    assert ApiKey.objects.count() == Project.objects.count() == LanguageModel.objects.count() == 1
    assert Provider.objects.get().base_url == "http://127.0.0.1:10/v1"
    assert LanguageModel.objects.get().is_default
    assert Api(secrets["api-key"].strip()).get("goals").status_code == 200


def test_first_run_without_a_model_makes_no_provider(
    db: None, settings: Any, tmp_path: Path
) -> None:
    settings.FAILSOFT_DATA_DIR = tmp_path
    settings.FAILSOFT_MODEL_URL = ""

    run("first_run")

    assert not Provider.objects.exists()


def test_create_admin_prints_the_password_once(db: None) -> None:
    _, printed = run("create_admin", "ada")

    password = printed.split("Password: ")[1].strip()
    assert authenticate(username="ada", password=password)
    assert get_user_model().objects.get().is_superuser
    with pytest.raises(CommandError, match="already"):
        run("create_admin", "ada")


def test_create_admin_refuses_a_weak_password(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("1234" + "\n"))

    with pytest.raises(CommandError, match="too short"):
        run("create_admin", "ada", "--password-stdin")
