"""The parts of the one-machine stack and their commands."""

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.error import HTTPError, URLError

from config.local import broker, postgres
from config.local.folder import Folder
from config.local.postgres import launch_command
from config.runtime import CHECKOUT

PROBE_SECONDS = 2.0
# Of a refusal that is printed.
MOST_CHARACTERS = 500
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
QUICK_STOP = ((signal.SIGTERM, 2.0),)


@dataclass(frozen=True)
class LocalProgram:
    """One program: its command, its readiness, and the signals that stop it."""

    name: str
    command: list[str]
    env: Mapping[str, str]
    ready: Callable[[], bool] = lambda: True
    # Since it last made progress; see StartProgress.
    ready_within_seconds: float = 60
    # Each signal and the seconds to wait after it; finally SIGKILL.
    stop: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5),)
    before: Callable[[], None] = lambda: None
    once: bool = False  # a setup step that ends by itself


def python(*arguments: str, end_with: signal.Signals) -> list[str]:
    return launch_command([sys.executable, *arguments], end_with=end_with)


def answers_http(url: str) -> bool:
    try:
        with _OPENER.open(url, timeout=PROBE_SECONDS) as response:
            return bool(response.status == 200)
    except (URLError, OSError, ValueError):
        return False


def missing_parts(address: str) -> dict[str, str]:
    """Return the parts of the product that are not ready, and why; empty when all are."""
    try:
        with _OPENER.open(f"{address}/readyz", timeout=PROBE_SECONDS) as response:
            body = response.read()
    except HTTPError as error:
        body = error.read()
    except (URLError, OSError):
        return {"web": "no answer"}
    try:
        parts = json.loads(body)["parts"]
    except ValueError:  # refused before any part was judged
        return {"web": body.decode(errors="replace").strip()[:MOST_CHARACTERS]}
    return {name: part["reason"] for name, part in parts.items() if not part["ok"]}


def postgres_part(folder: Folder, env: Mapping[str, str]) -> LocalProgram:
    """Return the embedded database; fast shutdown first, then immediate."""
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
    path = folder.sockets / "broker"
    command = broker.server_command(folder.path, path)
    return LocalProgram("broker", command, env, ready=lambda: broker.answers(path), stop=QUICK_STOP)


def model_part(port: int, env: Mapping[str, str]) -> LocalProgram:
    """Return the embedded language model; calls in flight are not awaited."""
    arguments = ("-m", "config.local.model", "--port", str(port))
    return LocalProgram(
        "model",
        python(*arguments, end_with=signal.SIGKILL),
        env,
        ready=lambda: answers_http(f"http://127.0.0.1:{port}/health"),
        stop=((signal.SIGTERM, 1),),
    )


def prepare_part(env: Mapping[str, str], options: list[str]) -> LocalProgram:
    """Return the setup: migrations, static files, first run, demo data, first goal."""
    arguments = (str(CHECKOUT / "manage.py"), "prepare_local", *options)
    command = python(*arguments, end_with=signal.SIGKILL)
    return LocalProgram("prepare", command, env, once=True)


def web_arguments(port: int) -> list[str]:
    """Return the Python arguments of the web server; config.asgi has the HTTP limits."""
    arguments = ["-m", "granian", "--interface", "asginl", "--http", "1"]
    arguments += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    arguments += ["--http1-header-read-timeout", "10000", "--no-access-log"]
    return [*arguments, "--log-level", "warning", "config.asgi:application"]


def web_part(port: int, env: Mapping[str, str]) -> LocalProgram:
    return LocalProgram(
        "web",
        python(*web_arguments(port), end_with=signal.SIGTERM),
        env,
        ready=lambda: answers_http(f"http://127.0.0.1:{port}/healthz"),
    )


def worker_part(name: str, queues: str, env: Mapping[str, str]) -> LocalProgram:
    """Return a Celery worker; it may finish its task before it must requeue it."""
    arguments = ["-m", "celery", "-A", "config.celery", "worker", "--queues", queues]
    arguments += ["--concurrency", "2", "--hostname", f"{name}@local"]
    arguments += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    arguments += ["--loglevel", "INFO"]
    return LocalProgram(
        name,
        python(*arguments, end_with=signal.SIGKILL),
        env,
        stop=((signal.SIGTERM, 10), (signal.SIGQUIT, 3)),
    )


def beat_part(env: Mapping[str, str]) -> LocalProgram:
    arguments = ("-m", "celery", "-A", "config.celery", "beat", "--pidfile=")
    command = python(*arguments, end_with=signal.SIGKILL)
    return LocalProgram("beat", command, env, stop=QUICK_STOP)


def clean_env(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of this process with the settings of the stack."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUNBUFFERED": "1",
        **settings,
    }
