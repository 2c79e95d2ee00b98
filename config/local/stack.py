"""The one-machine stack: its parts, their order and their settings."""

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
from config.local.supervisor import PartError, StopRequestedError, Supervisor, print_line
from config.runtime import remove_runtime, write_runtime
from diagnostics.verdict.cells import LOCAL

# The scheduler first, so that no new work arrives; the database last.
STOP_ORDER = (("beat",), ("web", "worker", "upkeep"), ("model", "broker"), ("postgres",))
# The stages are printed, because the first start takes a minute or two.
STAGES = {
    "embedded servers": "starting the embedded servers",
    "set-up": "preparing tables, pages and demo data",
    "first page": "starting web server, workers and scheduler",
}
READY_SECONDS = 60
# Workers that start compute more than this, a whole product without work half of it.
STARTING_SHARE = 0.15


@dataclass(frozen=True)
class Options:
    port: int
    data: Path
    remember: bool  # `data` was named on the command line
    model: bool
    demo: bool

    @property
    def base_url(self) -> str:
        return os.environ.get("FAILSOFT_BASE_URL") or self.address

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def stack_settings(folder: Folder, options: Options, model_port: int) -> dict[str, Any]:
    """Return the settings of this stack; environment variables take precedence."""
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
        # Keeps goals that are tried here out of the verdicts on other agents.
        "environment": os.environ.get("FAILSOFT_ENVIRONMENT", LOCAL),
        # One user on one machine; every page shows that MFA is off.
        "require_mfa": os.environ.get("FAILSOFT_REQUIRE_MFA", "false"),
    }


def part_stages(
    folder: Folder, options: Options, model_port: int, settings: dict[str, Any]
) -> list[list[LocalProgram]]:
    env = parts.clean_env({env_name(key): str(value) for key, value in settings.items()})
    servers = [
        *([] if os.environ.get("DATABASE_URL") else [parts.postgres_part(folder, env)]),
        *([] if os.environ.get("BROKER_URL") else [parts.broker_part(folder, env)]),
        *([parts.model_part(model_port, env)] if options.model else []),
    ]
    setup = [parts.prepare_part(env, [] if options.demo else ["--no-demo"])]
    product = [
        parts.web_part(options.port, env),
        parts.worker_part("worker", "plan,steps", env),
        parts.worker_part("upkeep", "fold,notify,report", env),
        parts.beat_part(env),
    ]
    return [servers, setup, product]


def await_whole_product(supervisor: Supervisor, options: Options) -> None:
    """Wait until /readyz answers 200, so that workers and the scheduler have reported."""
    progress = supervisor.watch_progress(READY_SECONDS, STARTING_SHARE)
    while missing := parts.missing_parts(options.address):
        supervisor.check_parts()
        text = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        if supervisor.is_stuck(progress, frozenset(missing), lambda text=text: text):  # type: ignore[misc] # bound now
            raise PartError(
                f"not ready within {READY_SECONDS} s of the last progress: {text}"
                f" (see {options.address}/readyz and {supervisor.folder.logs})"
            )


def print_summary(folder: Folder, options: Options, times: dict[str, float]) -> None:
    """Print the URL, the first password, the first goal and the durations of the start."""
    lines = [f"Failsoft is ready: {options.base_url}"]
    password = folder.path / "admin-password"
    if password.exists():
        first_password = password.read_text(encoding="utf-8").strip()
        lines.append(
            f"  sign in as: admin   first password: {first_password}   (kept in {password})"
        )
    with suppress(OSError, ValueError, KeyError):
        goal = json.loads((folder.path / FIRST_GOAL_FILE).read_text(encoding="utf-8"))
        lines.append(f"  first goal: {options.base_url}/runs/{goal['correlation_id']}/")
    lines.append(f"  data: {folder.path}   logs: {folder.logs}")
    durations = ", ".join(f"{name} {seconds:.1f}" for name, seconds in times.items())
    lines.append(f"  ready after {sum(times.values()):.1f} s: {durations}")
    lines.append("Ctrl-C stops everything.")
    print_line("\n".join(lines))


def start(supervisor: Supervisor, folder: Folder, options: Options) -> None:
    """Start all parts, publish the settings, wait until the product is ready."""
    prepare_sockets(folder)
    model_port = steady_port(folder, "model") if options.model else 0
    settings = stack_settings(folder, options, model_port)
    times: dict[str, float] = {}
    begin = time.monotonic()
    stages = part_stages(folder, options, model_port, settings)
    for (name, message), stage in zip(STAGES.items(), stages, strict=True):
        print_line(f"failsoft: {message}")
        supervisor.start_together(stage)
        if name == "embedded servers":
            write_runtime(folder.path, os.getpid(), settings)
        times[name] = time.monotonic() - begin - sum(times.values())
    await_whole_product(supervisor, options)
    times["workers"] = time.monotonic() - begin - sum(times.values())
    print_summary(folder, options, times | _inner_times(folder, times))


def _inner_times(folder: Folder, times: dict[str, float]) -> dict[str, float]:
    try:
        steps = json.loads((folder.path / TIMES_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {**steps, "set-up": times["set-up"] - sum(steps.values())}


def run_stack(folder: Folder, options: Options) -> int:
    """Run the stack until it is stopped; return the exit code."""
    supervisor = Supervisor(folder)
    supervisor.handle_stop_signals()
    code = 0
    try:
        start(supervisor, folder, options)
        supervisor.watch()
    except StopRequestedError:
        pass
    except (PartError, FolderError, OSError) as error:
        print_line(f"failsoft: {error}")
        code = 1
    remove_runtime(folder.path)
    begin = time.monotonic()
    supervisor.stop(STOP_ORDER)
    if code == 0:
        print_line(f"failsoft: stopped in {time.monotonic() - begin:.1f} s")
    return code
