"""The one-machine stack: which parts, in which order, with which settings."""

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.configuration import env_name
from config.local import parts
from config.local.broker import broker_url
from config.local.folder import (
    FIRST_GOAL_FILE,
    TIMES_FILE,
    Folder,
    FolderError,
    prepare_sockets,
    read_keys,
    steady_port,
)
from config.local.parts import LocalProgram
from config.local.postgres import database_url
from config.local.supervisor import PartError, StopRequestedError, Supervisor, say
from config.runtime import remove_runtime, write_runtime
from diagnostics.verdict.cells import LOCAL

# Beat first, so that no new work comes; the database last.
STOP_ORDER = (("beat",), ("web", "worker", "upkeep"), ("model", "broker"), ("postgres",))
# What is being waited for is said: the first start takes a minute or two.
STAGES = {
    "embedded servers": "starting the embedded servers",
    "set-up": "preparing tables, pages and demo data",
    "first page": "starting web server, workers and clock",
}
READY_SECONDS = 60
READY_TICK_SECONDS = 0.25


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    port: int
    data: Path
    remember: bool  # `data` was named on the command line
    model: bool
    demo: bool

    @property
    def base_url(self) -> str:
        """Address of the pages."""
        return os.environ.get("FAILSOFT_BASE_URL") or self.address

    @property
    def address(self) -> str:
        """Address of the web server on this machine."""
        return f"http://127.0.0.1:{self.port}"


def stack_settings(folder: Folder, options: Options, model_port: int) -> dict[str, Any]:
    """Return the settings of this stack; servers and keys named outside win."""
    settings: dict[str, Any] = {
        "database_url": database_url(folder.sockets / "pg"),
        "broker_url": broker_url(folder.sockets / "broker"),
        "base_url": options.base_url,
        **read_keys(folder),
    }
    for name in settings:
        settings[name] = os.environ.get(env_name(name)) or settings[name]
    return {
        **settings,
        "model_url": f"http://127.0.0.1:{model_port}" if options.model else "",
        "data_dir": str(folder.path),
        "local_stack": True,
        # The verdict on what other agents send is not about goals tried here.
        "environment": os.environ.get("FAILSOFT_ENVIRONMENT", LOCAL),
        # One person on one machine; every page says so.
        "require_mfa": os.environ.get("FAILSOFT_REQUIRE_MFA", "false"),
    }


def part_stages(
    folder: Folder, options: Options, model_port: int, settings: dict[str, Any]
) -> list[list[LocalProgram]]:
    """Return the parts; those of one stage need nothing of each other."""
    env = parts.clean_env({env_name(key): str(value) for key, value in settings.items()})
    servers = [
        *([] if os.environ.get("DATABASE_URL") else [parts.postgres_part(folder, env)]),
        *([] if os.environ.get("BROKER_URL") else [parts.broker_part(folder, env)]),
        *([parts.model_part(model_port, env)] if options.model else []),
    ]
    setup = [parts.prepare_part(env, [] if options.demo else ["--no-demo"])]
    product = [
        parts.web_part(options.port, env),
        parts.worker_part("worker", "plan,steps", 2, env),
        parts.worker_part("upkeep", "fold,notify,report", 2, env),
        parts.beat_part(folder, env),
    ]
    return [servers, setup, product]


def await_whole_product(supervisor: Supervisor, options: Options) -> None:
    """Wait until /readyz says 200: workers and beat have reported, too."""
    deadline = time.monotonic() + READY_SECONDS
    while not parts.answers_http(f"{options.address}/readyz"):
        if supervisor.stop_signals:
            raise StopRequestedError
        supervisor.look_after_all()
        if time.monotonic() > deadline:
            raise PartError(
                f"not ready within {READY_SECONDS} s: see {options.address}/readyz"
                f" and {supervisor.folder.logs}"
            )
        time.sleep(READY_TICK_SECONDS)


def greet(folder: Folder, options: Options, times: dict[str, float]) -> None:
    """Print the address, the first password, the first goal and what took how long."""
    lines = [f"Failsoft is ready: {options.base_url}"]
    password = folder.path / "admin-password"
    if password.exists():
        word = password.read_text(encoding="utf-8").strip()
        lines.append(f"  sign in as: admin   first password: {word}   (kept in {password})")
    with suppress(OSError, ValueError, KeyError):
        goal = json.loads((folder.path / FIRST_GOAL_FILE).read_text(encoding="utf-8"))
        lines.append(f"  first goal: {options.base_url}/runs/{goal['correlation_id']}/")
    lines.append(f"  data: {folder.path}   logs: {folder.logs}")
    took = ", ".join(f"{name} {seconds:.1f}" for name, seconds in times.items())
    lines.append(f"  ready after {sum(times.values()):.1f} s: {took}")
    lines.append("Ctrl-C stops everything.")
    say("\n".join(lines))


def start(supervisor: Supervisor, folder: Folder, options: Options) -> None:
    """Start all parts, publish the addresses, wait for the first page."""
    prepare_sockets(folder)
    model_port = steady_port(folder, "model") if options.model else 0
    settings = stack_settings(folder, options, model_port)
    times: dict[str, float] = {}
    begin = time.monotonic()
    stages = part_stages(folder, options, model_port, settings)
    for (name, words), stage in zip(STAGES.items(), stages, strict=True):
        say(f"failsoft: {words}")
        supervisor.start_together(stage)
        if name == "embedded servers":
            write_runtime(folder.path, os.getpid(), settings)
        times[name] = time.monotonic() - begin - sum(times.values())
    await_whole_product(supervisor, options)
    times["workers"] = time.monotonic() - begin - sum(times.values())
    greet(folder, options, times | _inner_times(folder, times))


def _inner_times(folder: Folder, times: dict[str, float]) -> dict[str, float]:
    """Split the set-up into its steps; the rest of it is the start of Python."""
    try:
        steps = json.loads((folder.path / TIMES_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {**steps, "set-up": times["set-up"] - sum(steps.values())}


def run_stack(folder: Folder, options: Options) -> int:
    """Run the stack until it is stopped; returns the exit code."""
    supervisor = Supervisor(folder)
    supervisor.listen()
    code = 0
    try:
        start(supervisor, folder, options)
        supervisor.watch()
    except StopRequestedError:
        pass
    except (PartError, FolderError, OSError) as error:
        say(f"failsoft: {error}")
        code = 1
    remove_runtime(folder.path)
    begin = time.monotonic()
    supervisor.stop(STOP_ORDER)
    if code == 0:
        say(f"failsoft: stopped in {time.monotonic() - begin:.1f} s")
    return code
