"""Goals on real workers that are killed while they work: nothing lost, nothing doubled."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from tests.faults.stack import Stack, eventually, running

pytestmark = pytest.mark.faults

GOALS = 20
KILLS = 5
TERMINAL_SECONDS = 300
PLAN = {
    "steps": [
        {"step_id": "step_1", "tool": {"name": "echo", "args": {"text": "one"}}},
        {
            "step_id": "step_2",
            "dependencies": ["step_1"],
            "tool": {"name": "sleep", "args": {"seconds": 0.2}},
        },
    ]
}
SET_UP = """
INSERT INTO agents_provider (project_id, name, adapter, base_url, credential, enabled)
SELECT id, 'fake', 'scripted', %(script)s, '', true FROM diagnostics_project;
"""
ADD_MODEL = """
INSERT INTO agents_languagemodel (project_id, provider_id, name, is_default, enabled,
    output_mode, last_output_mode, supported_output_modes, max_output_tokens,
    temperature, attempt_timeout_seconds, prompt_version, streaming)
SELECT project_id, id, 'fake-1', true, true, 'text', 'text', '{}', 256, 0, 30, '', false
FROM agents_provider WHERE name = 'fake';
"""


def write_script(path: Path) -> None:
    """Write 200 replies, three in ten of which are no plan."""
    chance = Random(20)
    with path.open("w", encoding="utf-8") as script:
        for _ in range(200):
            text = "no plan" if chance.random() < 0.3 else json.dumps(PLAN)
            script.write(json.dumps({"text": text, "delay_seconds": 0.3}) + "\n")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose planner is a script."""
    folder = tmp_path_factory.mktemp("kills")
    write_script(folder / "script.jsonl")
    allow = ("env", "FAILSOFT_ALLOW_SCRIPTED=true")
    bare = ("--no-demo", "--no-model")
    with running(folder / "data", *bare, lead=allow) as stack:
        with psycopg.connect(stack.settings()["database_url"]) as connection:
            connection.execute(SET_UP, {"script": f"file:{folder / 'script.jsonl'}"})
            connection.execute(ADD_MODEL)
        yield stack


def submit(stack: Stack, number: int) -> None:
    """Post a goal; it is accepted at once."""
    key = (stack.folder / "api-key").read_text(encoding="utf-8").strip()
    body = {"goal": f"Say one, then wait ({number}).", "max_iterations": 1}
    request = urllib.request.Request(
        f"http://127.0.0.1:{stack.port}/api/v1/goals",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - loopback
        assert answer.status == 202


def ask(stack: Stack, query: str) -> list[tuple[Any, ...]]:
    """Read the stack's database."""
    with psycopg.connect(stack.settings()["database_url"]) as connection:
        return connection.execute(query).fetchall()


def kill_a_child(stack: Stack, chance: Random) -> None:
    """Kill -9 one of the processes that execute tasks."""
    assert eventually(lambda: len(_children(stack)) > 1, 30)
    os.kill(chance.choice(_children(stack)), signal.SIGKILL)


def _children(stack: Stack) -> list[int]:
    worker = stack.pid_of("celery", "plan,steps")
    found = Path(f"/proc/{worker}/task/{worker}/children").read_text(encoding="utf-8")
    return [int(pid) for pid in found.split()]


def test_m_3_m_4_killed_workers_lose_and_double_nothing(stack: Stack) -> None:
    chance = Random(4)
    for number in range(GOALS):
        submit(stack, number)
    for _ in range(KILLS):
        time.sleep(1.5)
        kill_a_child(stack, chance)

    def all_ended() -> bool:
        open_goals = "SELECT 1 FROM agents_goal WHERE ended_at IS NULL"
        return not ask(stack, open_goals)

    assert eventually(all_ended, TERMINAL_SECONDS), stack.said()
    statuses = dict(ask(stack, "SELECT status, count(*) FROM agents_goal GROUP BY 1"))
    assert sum(statuses.values()) == GOALS
    assert set(statuses) <= {"completed", "failed"}
    assert statuses["completed"] > GOALS / 2
    for state, kind in (("invalid", "parse_invalid"), ("valid", "succeeded")):
        assert ask(stack, _ATTEMPTS.format(state)) == ask(stack, _EVENTS.format(kind))
    degraded = "SELECT correlation_id FROM agents_goal WHERE status = 'failed'"
    told = "SELECT correlation_id FROM diagnostics_event WHERE kind = 'degraded'"
    assert sorted(ask(stack, degraded)) == sorted(ask(stack, told))


def test_every_step_of_every_run_is_final_once(stack: Stack) -> None:
    unfinished = "SELECT count(*) FROM plans_runstep WHERE state <> 'final'"
    assert ask(stack, unfinished) == [(0,)]
    doubled = "SELECT correlation_id FROM plans_run GROUP BY 1 HAVING count(*) > 1"
    assert ask(stack, doubled) == []


def test_no_lease_and_no_message_is_left_over(stack: Stack) -> None:
    leases = "SELECT count(*) FROM agents_goal WHERE lease_until IS NOT NULL"
    assert ask(stack, leases) == [(0,)]
    waiting = "SELECT 1 FROM diagnostics_outboxmessage WHERE sent_at IS NULL"
    assert eventually(lambda: not ask(stack, waiting), 30)


_ATTEMPTS = (
    "SELECT goal.correlation_id, attempt.attempt FROM agents_attempt AS attempt"
    " JOIN agents_goal AS goal ON goal.id = attempt.goal_id"
    " WHERE attempt.state = '{}' ORDER BY 1, 2"
)
_EVENTS = "SELECT correlation_id, attempt FROM diagnostics_event WHERE kind = '{}' ORDER BY 1, 2"
