"""The one-machine stack under kill -9, second starts and taken ports."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from tests.faults.stack import ROOT, START_SECONDS, Stack, clean_env, command, eventually, running

pytestmark = pytest.mark.faults

STOP_SECONDS = 30
BARE = ("--no-demo", "--no-model")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for the whole file: later starts find what earlier ones left."""
    return tmp_path_factory.mktemp("stack") / "data"


@pytest.fixture
def stack(folder: Path) -> Iterator[Stack]:
    """A stack without demo data and model."""
    with running(folder, *BARE) as stack:
        yield stack


def ask_for_a_long_answer(settings: dict[str, str]) -> None:
    body = {
        "messages": [{"role": "user", "content": "Count on."}],
        "max_tokens": 4000,
        "ignore_eos": True,  # a minute of work, whatever the model would say
    }
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{settings['model_url']}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {settings['model_key']}"},
    )
    with suppress(OSError):
        urllib.request.urlopen(request, timeout=60).read()  # noqa: S310 - loopback


@pytest.mark.model
@pytest.mark.parametrize("with_guard", [False, True])
def test_nothing_is_left_after_kill_in_a_model_call(folder: Path, with_guard: bool) -> None:
    with running(folder, "--no-demo") as stack:
        call = Thread(target=ask_for_a_long_answer, args=[stack.settings()])
        call.start()
        time.sleep(1)
        assert call.is_alive()
        supervisor = stack.lock()["pid"]
        assert isinstance(supervisor, int)
        assert supervisor != stack.process.pid
        if with_guard:
            os.kill(stack.process.pid, signal.SIGSTOP)  # so that it cannot tidy up
        os.kill(supervisor, signal.SIGKILL)
        if with_guard:
            os.kill(stack.process.pid, signal.SIGKILL)
        assert stack.nothing_is_left(), stack.pids()
        call.join(timeout=5)


def test_ctrl_c_stops_everything_in_time(stack: Stack) -> None:
    begin = time.monotonic()
    os.killpg(stack.process.pid, signal.SIGINT)
    assert stack.process.wait(timeout=STOP_SECONDS) == 0
    assert time.monotonic() - begin < STOP_SECONDS
    assert stack.nothing_is_left(), stack.pids()
    assert "database system is shut down" in _log(stack, "postgres")


@pytest.mark.parametrize(
    "line",
    ["starting the embedded servers", "preparing tables", "starting web server"],
    ids=["servers", "preparation", "workers"],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["ctrl-c", "hang-up"])
def test_ctrl_c_during_the_start_leaves_nothing(
    folder: Path, line: str, number: signal.Signals
) -> None:
    stack = Stack(folder.parent / f"data-{number}", *BARE)
    try:
        assert eventually(lambda: line in stack.said(), START_SECONDS), stack.said()
        os.killpg(stack.process.pid, number)
        assert stack.process.wait(timeout=STOP_SECONDS) == 0
        assert stack.pids() == set()
        assert "failsoft: stopped in" in stack.said()
        assert "Traceback" not in stack.said()
    finally:
        stack.end()


def test_a_second_start_says_where_the_first_one_runs(stack: Stack) -> None:
    second = subprocess.run(
        command(stack.port + 1, *BARE),
        cwd=ROOT,
        env=clean_env(stack.folder),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert second.returncode == 1
    url = f"http://127.0.0.1:{stack.port}"
    expected = f"failsoft: already running at {url}, pid {stack.lock()['pid']}"
    assert second.stderr.startswith(expected)
    assert len(second.stderr.splitlines()) == 1
    assert stack.is_ready()


def test_a_taken_port_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = subprocess.run(
            command(port, *BARE),
            cwd=ROOT,
            env=clean_env(tmp_path / "data"),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert answer.returncode == 1
    assert answer.stderr == (f"failsoft: port {port} is taken; choose another with --port\n")


@pytest.mark.parametrize(
    "words",
    [
        ("celery", "plan,steps"),
        ("celery", "fold,notify,report"),
        ("celery", "beat"),
        ("granian",),
        ("valkey-server",),
        ("postgres", "-D"),
    ],
    ids=["worker", "upkeep", "beat", "web", "broker", "database"],
)
def test_a_killed_part_is_started_again(shared: Stack, words: tuple[str, ...]) -> None:
    killed = shared.pid_of(*words)
    os.kill(killed, signal.SIGKILL)

    def is_back() -> bool:
        with suppress(LookupError):
            return shared.pid_of(*words) != killed and shared.is_ready()
        return False

    assert eventually(lambda: not _exists(killed), 10)
    assert eventually(is_back, 60), shared.said()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One stack for the tests that leave it running."""
    with running(tmp_path_factory.mktemp("shared") / "data", *BARE) as stack:
        yield stack


def test_commands_use_the_running_stack(shared: Stack) -> None:
    answer = _manage(shared.folder, "shell", "--command", _COUNT_USERS)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip().splitlines()[-1].isdecimal()


def test_tasks_open_no_connection_of_their_own(shared: Stack) -> None:
    def begun() -> int:
        answer = _manage(shared.folder, "shell", "--command", _COUNT_SESSIONS)
        return int(answer.stdout.strip().splitlines()[-1])

    assert eventually(shared.is_ready, 60)
    before = begun()
    # About three tasks a second, of the clock.
    time.sleep(10)
    assert begun() - before < 10


def test_commands_say_in_one_line_that_the_stack_is_down(tmp_path: Path) -> None:
    answer = _manage(tmp_path, "shell", "--command", _COUNT_USERS)
    assert answer.returncode == 1
    assert "The local stack is not running" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_commands_without_a_database_work_without_a_stack(tmp_path: Path) -> None:
    assert _manage(tmp_path, "check").returncode == 0


def test_the_whole_stack_ends_with_make(folder: Path) -> None:
    with running(folder, *BARE, lead=("env", "MAKELEVEL=1", "sh", "-c", '"$@"; :', "sh")) as stack:
        os.kill(stack.process.pid, signal.SIGKILL)
        assert eventually(lambda: not stack.pids(), STOP_SECONDS), stack.pids()


_COUNT_USERS = "from django.contrib.auth.models import User; print(User.objects.count())"
_COUNT_SESSIONS = (
    "from diagnostics.store.sql import fetch;"
    " print(fetch('SELECT sum(sessions) FROM pg_stat_database')[0][0])"
)


def _manage(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    python = command(0)[0]
    return subprocess.run(
        [python, "manage.py", *words],
        cwd=ROOT,
        env=clean_env(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _log(stack: Stack, part: str) -> str:
    return (stack.folder / "logs" / f"{part}.log").read_text(encoding="utf-8")
