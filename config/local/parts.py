"""The parts of the one-machine stack: what each is and how it is started."""

import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.error import URLError

from config.local import broker, postgres
from config.local.folder import Folder
from config.local.postgres import launched
from config.runtime import CHECKOUT

PROBE_SECONDS = 2.0
QUICKLY = ((signal.SIGTERM, 2.0),)


@dataclass(frozen=True)
class LocalProgram:
    """One program: its command, when it is ready, how it is asked to end."""

    name: str
    command: list[str]
    env: Mapping[str, str]
    ready: Callable[[], bool] = lambda: True
    ready_within_seconds: float = 60
    # Each signal and how long to wait after it; at the end comes SIGKILL.
    stop: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5),)
    before: Callable[[], None] = lambda: None
    once: bool = field(default=False)  # a set-up step that ends by itself


def python(*words: str, end_with: signal.Signals) -> list[str]:
    """Return the command of one of our own modules."""
    return launched([sys.executable, *words], end_with=end_with)


def answers_http(url: str) -> bool:
    """Does `url` answer 200?"""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PROBE_SECONDS) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError, ValueError):
        return False


def postgres_part(folder: Folder, env: Mapping[str, str]) -> LocalProgram:
    """The embedded database; fast shutdown first, then immediate."""
    sockets = folder.sockets / "pg"

    def before() -> None:
        postgres.initialise(folder.postgres)
        postgres.forget_dead_server(folder.postgres)

    return LocalProgram(
        "postgres",
        postgres.server_command(folder.postgres, sockets),
        env,
        ready=lambda: postgres.ensure_database(sockets),
        stop=((signal.SIGINT, 5), (signal.SIGQUIT, 3)),
        before=before,
    )


def broker_part(folder: Folder, env: Mapping[str, str]) -> LocalProgram:
    """The embedded broker on a unix socket."""
    path = folder.sockets / "broker"
    command = broker.server_command(folder.path, path)
    return LocalProgram("broker", command, env, ready=lambda: broker.answers(path), stop=QUICKLY)


def model_part(port: int, env: Mapping[str, str]) -> LocalProgram:
    """The embedded language model; a call in flight is not worth waiting for."""
    words = ("-m", "config.local.model", "--port", str(port))
    return LocalProgram(
        "model",
        python(*words, end_with=signal.SIGKILL),
        env,
        ready=lambda: answers_http(f"http://127.0.0.1:{port}/health"),
        stop=((signal.SIGTERM, 1),),
    )


def prepare_part(env: Mapping[str, str], options: list[str]) -> LocalProgram:
    """Migrations, static files, first-run set-up, demo data, the first goal."""
    words = (str(CHECKOUT / "manage.py"), "prepare_local", *options)
    command = python(*words, end_with=signal.SIGKILL)
    return LocalProgram("prepare", command, env, ready_within_seconds=300, once=True)


def web_words(port: int) -> list[str]:
    """Return what Python executes as the web server; the bounds of HTTP are in config.asgi."""
    words = ["-m", "granian", "--interface", "asginl", "--http", "1"]
    words += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    words += ["--http1-header-read-timeout", "10000", "--no-access-log"]
    return [*words, "--log-level", "warning", "config.asgi:application"]


def web_part(port: int, env: Mapping[str, str]) -> LocalProgram:
    """The web server."""
    return LocalProgram(
        "web",
        python(*web_words(port), end_with=signal.SIGTERM),
        env,
        ready=lambda: answers_http(f"http://127.0.0.1:{port}/healthz"),
        stop=((signal.SIGTERM, 5),),
    )


def worker_part(name: str, queues: str, children: int, env: Mapping[str, str]) -> LocalProgram:
    """A Celery worker; it first finishes its task, then is told to let go of it."""
    words = ["-m", "celery", "-A", "config.celery", "worker", "--queues", queues]
    words += ["--concurrency", str(children), "--hostname", f"{name}@local"]
    words += ["--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    return LocalProgram(
        name,
        python(*words, end_with=signal.SIGKILL),
        env,
        stop=((signal.SIGTERM, 10), (signal.SIGQUIT, 3)),
    )


def beat_part(folder: Folder, env: Mapping[str, str]) -> LocalProgram:
    """Celery's clock."""
    schedule = str(folder.path / "beat-schedule")
    words = ("-m", "celery", "-A", "config.celery", "beat", "--schedule", schedule)
    command = python(*words, "--pidfile=", end_with=signal.SIGKILL)
    return LocalProgram("beat", command, env, stop=QUICKLY)


def clean_env(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with the stack's own settings on top."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUNBUFFERED": "1",
        **settings,
    }
