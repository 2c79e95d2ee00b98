"""`make run`: start the whole product on this machine.

python -m config.local [--port PORT] [--data DIR] [--no-model] [--no-demo]
"""

import argparse
import os
import shlex
import signal
import sys
from pathlib import Path

from config.configuration import ConfigurationError, load_configuration
from config.local.folder import (
    AlreadyRunningError,
    Folder,
    FolderError,
    is_free,
    prepare_folder,
    remove_sockets,
    sign_lock,
    take_lock,
)
from config.local.guard import guarded
from config.local.launch import end_with_starter
from config.local.stack import Options, run_stack
from config.runtime import data_folder, remember_data_folder, remove_runtime

# As a shell reports a program that Ctrl-C ended.
INTERRUPTED = 130


def parse_arguments() -> Options:
    parser = argparse.ArgumentParser(
        prog="make run",
        description="Run the whole product on this machine; Ctrl-C stops it.",
        epilog='With make, put them into ARGS: make run ARGS="--port 9000 --no-demo"',
    )
    parser.add_argument("--port", type=int, default=8000, help="port of the web server")
    parser.add_argument("--data", type=Path, help="data folder; remembered for later starts")
    parser.add_argument("--no-model", action="store_true", help="no language model")
    parser.add_argument("--no-demo", action="store_true", help="no demo data")
    arguments = parser.parse_args()
    if not 1 <= arguments.port <= 65535:
        parser.error(f"--port {arguments.port}: a port is a number from 1 to 65535")
    return Options(
        port=arguments.port,
        data=(arguments.data or data_folder()).absolute(),
        remember=arguments.data is not None,
        model=not arguments.no_model,
        demo=not arguments.no_demo,
    )


def prepare(options: Options) -> tuple[Folder, int]:
    """Check the preconditions of a start; return the data folder and its lock."""
    folder = prepare_folder(options.data)
    lock = take_lock(folder, options.base_url)
    if not is_free(options.port):
        raise FolderError(f"port {options.port} is taken; choose another with --port")
    load_configuration(database_url="", local_stack=True)
    if options.remember:
        try:
            remember_data_folder(folder.path)
        except OSError as error:  # commands of a read-only checkout are given the folder
            remedy = f"give commands FAILSOFT_DATA_DIR={shlex.quote(str(folder.path))}"
            print(f"failsoft: {error}; {remedy}", file=sys.stderr)  # noqa: T201 - for the terminal
    return folder, lock


def main() -> int:
    """Start everything, or print the reason why not in one line."""
    options = parse_arguments()
    if "MAKELEVEL" in os.environ:  # stop when make is killed
        end_with_starter(signal.SIGTERM)
    try:
        folder, lock = prepare(options)
    except (AlreadyRunningError, FolderError, ConfigurationError) as error:
        print(f"failsoft: {error}", file=sys.stderr)  # noqa: T201 - for the terminal
        return 1
    except KeyboardInterrupt:  # nothing runs yet
        return INTERRUPTED

    def supervise() -> int:
        sign_lock(lock, options.base_url, os.getpid())
        return run_stack(folder, options)

    code = guarded(supervise)
    remove_runtime(folder.path)
    remove_sockets(folder)
    if code < 0:  # killed: the guard has ended every part
        name = signal.Signals(-code).name
        print(f"failsoft: the supervisor was ended by {name}; all is stopped")  # noqa: T201
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
