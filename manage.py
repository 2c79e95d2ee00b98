#!/usr/bin/env python3
"""Commands of Failsoft."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError, connection

from config.configuration import Configuration, ConfigurationError, configuration
from config.runtime import data_folder
from failsoft import VERSION

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


def main() -> None:
    """Run the command named on the command line."""
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"Failsoft {VERSION}")  # noqa: T201 - for the terminal
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    for place, text in enumerate(sys.argv):
        # Bytes that are no UTF-8 arrive as lone surrogates, which nothing can store.
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            sys.exit(f"Argument {place} is not UTF-8.")
    try:
        settings = configuration()
    except ConfigurationError as error:
        sys.exit(f"Settings: {error}")
    if sys.stderr.isatty() and "log_level" not in settings.model_fields_set:
        # A person reads the command's own lines; nobody set a level.
        os.environ["FAILSOFT_LOG_LEVEL"] = "WARNING"
        configuration.cache_clear()
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    except OperationalError as error:
        if connection.connection is not None:
            raise
        sys.exit(describe_unreachable(settings, error))


if __name__ == "__main__":
    main()
