#!/usr/bin/env python3
"""Commands of Failsoft."""

import errno
import os
import sys

from django.core.management import execute_from_command_line
from django.db import DatabaseError, OperationalError, connection

from config.configuration import Configuration, configuration
from config.database import REMEDIES
from config.runtime import data_folder
from failsoft import VERSION
from failsoft.json_lines import guard_terminal

FULL_OR_READ_ONLY = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
# As a shell reports a program that Ctrl-C ended.
INTERRUPTED = 130


def describe_unreachable(settings: Configuration, error: OperationalError) -> str:
    """Return the line for a database that takes no connection, and what to do."""
    if settings.local_stack or not settings.database_url:
        return (
            f"The local stack is not running (data folder {data_folder()})."
            " Start it with `make run`, or set DATABASE_URL."
        )
    why = " ".join(str(error).split())
    return f"The database of DATABASE_URL does not answer: {why}"


def describe_refusal(error: DatabaseError) -> str | None:
    """Return the line for what an administrator can mend; None for a fault of the product."""
    cause: BaseException | None = error
    while cause and not getattr(cause, "sqlstate", None):
        cause = cause.__cause__ or cause.__context__
    remedy = REMEDIES.get(getattr(cause, "sqlstate", ""))
    return f"The database refuses: {str(cause).splitlines()[0]} ({remedy})." if remedy else None


def execute(settings: Configuration) -> None:
    """Run the command; what an administrator can mend ends it with one line."""
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    except DatabaseError as error:
        if isinstance(error, OperationalError) and connection.connection is None:
            sys.exit(describe_unreachable(settings, error))
        if not (line := describe_refusal(error)):
            raise
        sys.exit(line)
    except OSError as error:
        if error.filename is None and error.errno not in FULL_OR_READ_ONLY:
            raise
        sys.exit(f"{error.filename or 'A file'}: {error.strerror}.")


def main() -> None:
    """Run the command named on the command line."""
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"Failsoft {VERSION}")  # noqa: T201 - for the terminal
        return
    for place, text in enumerate(sys.argv):
        # Bytes that are no UTF-8 arrive as lone surrogates, which nothing can store.
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            sys.exit(f"Argument {place} is not UTF-8.")
    guard_terminal()
    settings = configuration()
    if sys.stderr.isatty() and "log_level" not in settings.model_fields_set:
        # A person reads the command's own lines; nobody set a level.
        os.environ["FAILSOFT_LOG_LEVEL"] = "WARNING"
        configuration.cache_clear()
    execute(settings)


if __name__ == "__main__":
    main()
