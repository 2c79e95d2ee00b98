"""The example programs run as they are documented, against a real web process and a script."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.projects import issue_key
from diagnostics.store.partitions import ensure_partitions
from tests.agents.conftest import ASK, CALL_ECHO, FINISH, PLAN, Planner, work_off

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECONDS = 60

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _partitions(transactional_db: None) -> None:
    ensure_partitions()


class Programs:
    """Runs an example while this process is its worker."""

    def __init__(self, url: str, key: str) -> None:
        self.env = {**os.environ, "FAILSOFT_URL": url, "FAILSOFT_API_KEY": key}

    def run(self, name: str, *words: str, typed: str = "") -> tuple[int, str]:
        """Exit code and output of an example; `typed` is what a person types."""
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / name), *words],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(typed)
        process.stdin.close()
        deadline = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            work_off()
            time.sleep(0.05)
        process.kill()
        with process.stdout as output:
            return process.wait(), output.read()


@pytest.fixture
def programs(planner: Planner, live_server: LiveServer) -> Programs:
    """Examples that are given the address and a key."""
    return Programs(live_server.url, issue_key(planner.project, "e", list(Scope)).text)


def test_s1_54_the_basic_example_shows_its_configuration_and_its_attempts(
    planner: Planner, programs: Programs
) -> None:
    planner.will_say("First I would say hello.", PLAN)

    code, said = programs.run(
        "user_interaction_basic.py", "--max-retries", "3", "--stub", "Say hello"
    )

    assert code == 0, said
    assert "'max_retries': 3" in said
    assert "'use_stub_fallback': True" in said
    assert "attempt 1: invalid: not_json line 1 column 1\nattempt 2: valid" in said
    assert "completed (repaired)" in said


def test_s1_54_the_basic_example_tells_a_failure_and_ends_with_1(
    planner: Planner, programs: Programs
) -> None:
    planner.will_say({"text": "no", "repeat": True})

    code, said = programs.run("user_interaction_basic.py", "Say hello")

    assert code == 1
    assert "attempt 2: invalid: not_json line 1 column 1, simplified" in said
    assert "failed (degraded): An internal planning error" in said
    assert "/help/patterns/" in said


def test_the_basic_example_answers_a_question(planner: Planner, programs: Programs) -> None:
    planner.will_say(ASK, FINISH)

    code, said = programs.run(
        "user_interaction_basic.py", "--mode", "next_step", "Tell the weather", typed="Oslo\n"
    )

    assert code == 0, said
    assert "Which city?" in said
    assert "asked the user: Which city? - answered: Oslo" in planner.prompts[1]


def test_the_basic_example_tells_what_was_refused(programs: Programs) -> None:
    code, said = programs.run("user_interaction_basic.py", "--max-retries", "9", "Hi")

    assert code == 2
    assert "max_retries" in said


def test_s1_53_the_assistant_works_on_a_goal_a_line_with_the_policy_that_was_set(
    planner: Planner, programs: Programs
) -> None:
    planner.will_say("no", "no", CALL_ECHO, ASK, FINISH)

    code, said = programs.run(
        "live_interactive_assistant.py",
        typed="/retries 3\n/feedback off\nSay hello\nOslo\n/policy\n\n",
    )

    assert code == 0, said
    assert "{'max_retries': 3, 'send_error_feedback': False}" in said
    assert "attempt 3: valid" in said
    assert "simplified" not in said
    assert "Which city?" in said
    assert "All done." in said
    assert not any("Errors:" in prompt for prompt in planner.prompts)


def test_an_example_finds_the_stack_that_runs_on_another_port(tmp_path: Path) -> None:
    runtime = {"settings": {"base_url": "http://127.0.0.1:9000"}}
    (tmp_path / "runtime.json").write_text(json.dumps(runtime))
    (tmp_path / "api-key").write_text("key-of-this-machine\n")
    done = run_client(tmp_path)
    assert done.stdout == "http://127.0.0.1:9000 key-of-this-machine\n"


def test_an_example_says_in_one_line_that_no_stack_runs(tmp_path: Path) -> None:
    done = run_client(tmp_path)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"The local stack is not running (data folder {tmp_path})")


def run_client(folder: Path) -> "subprocess.CompletedProcess[str]":
    own = ("FAILSOFT_URL", "FAILSOFT_API_KEY")
    env = {name: value for name, value in os.environ.items() if name not in own}
    return subprocess.run(
        [sys.executable, EXAMPLES / "failsoft_client.py"],
        env={**env, "FAILSOFT_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
