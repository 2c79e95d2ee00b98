"""The embedded PostgreSQL: its folder, its command and its address."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from config.local.binaries import find_postgresql, postgresql_major

LAUNCH = Path(__file__).with_name("launch.py")
ROLE = "failsoft"
METHOD = "auto"  # of leaving uid 0; see launch.py


class PostgresError(Exception):
    """PostgreSQL cannot be set up; the message is its error."""


def launch_command(
    command: list[str], *, end_with: int, own: list[Path] | None = None
) -> list[str]:
    """Return `command` with the launcher; with `own` it never runs as root."""
    arguments = [sys.executable, "-I", "-S", str(LAUNCH), "--end-with", str(int(end_with))]
    if own is not None:
        arguments += ["--plain-user", METHOD]
        arguments += [argument for folder in own for argument in ("--own", str(folder))]
    return [*arguments, "--", *command]


def run_once(command: list[str]) -> None:
    """Run a setup program to its end; PostgresError has its reason."""
    # /: the program may not be allowed to read the current folder.
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")  # noqa: S603 - no user input
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        # A hint may follow the error.
        errors = [line for line in lines if "error:" in line or "FATAL:" in line]
        reasons = [*errors[:1], *lines[-1:], f"exit code {result.returncode}"]
        raise PostgresError(reasons[0])


def is_initialised(folder: Path) -> bool:
    return (folder / "PG_VERSION").exists() and (folder / "failsoft-ready").exists()


def initialise(folder: Path) -> None:
    """Create the cluster in `folder`; an incomplete one is recreated."""
    if is_initialised(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    binaries = find_postgresql()
    locale = ["--locale=C.UTF-8"]
    if postgresql_major(binaries) >= 17:
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    command = [str(binaries / "initdb"), "--pgdata", str(folder), "--username", ROLE]
    command += ["--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"]
    run_once(launch_command([*command, *locale], end_with=signal.SIGKILL, own=[folder]))
    (folder / "failsoft-ready").touch()


def server_command(folder: Path, sockets: Path, options: dict[str, str] | None = None) -> list[str]:
    """Return the command of the server: one unix socket in `sockets`, no TCP.

    Every user that may enter `sockets` (mode 0700) may connect. SIGQUIT on the death of the
    starter is PostgreSQL's immediate shutdown: nothing committed is lost.
    """
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        "shared_buffers": "128MB",
        "max_connections": "60",
        "log_timezone": "UTC",
        # Keep statements and their values out of logs.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "timezone": "UTC",
        **(options or {}),
    }
    arguments = [str(find_postgresql() / "postgres"), "-D", str(folder)]
    arguments += [
        argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")
    ]
    return launch_command(arguments, end_with=signal.SIGQUIT, own=[folder, sockets])


def is_ready(sockets: Path) -> bool:
    program = str(find_postgresql() / "pg_isready")
    # Named, since without it the program looks for the name of the user, who may have none.
    command = [program, "--quiet", "--host", str(sockets), "--username", ROLE]
    return subprocess.run(command, check=False, timeout=10).returncode == 0  # noqa: S603 - no user input


def ensure_database(sockets: Path) -> bool:
    """Create the database if it is missing; return False without a server."""
    if not is_ready(sockets):
        return False
    program = str(find_postgresql() / "createdb")
    try:
        run_once([program, "--host", str(sockets), "--username", ROLE, ROLE])
    except PostgresError as error:
        return "already exists" in str(error)
    return True


def forget_dead_server(folder: Path) -> None:
    """Remove the pid file of a dead server: another process may have its pid now."""
    path = folder / "postmaster.pid"
    try:
        pid = path.read_text(encoding="utf-8").split()[0]
    except (OSError, IndexError):
        return
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        arguments = []
    if os.fsencode(folder) not in arguments:
        path.unlink()


def database_url(sockets: Path) -> str:
    return f"postgresql://{ROLE}@/{ROLE}?host={quote(str(sockets))}"
