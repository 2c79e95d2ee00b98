#!/usr/bin/env python3
"""Commands of Failsoft."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError

from config.configuration import ConfigurationError, configuration
from config.runtime import data_folder


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        settings = configuration()
    except ConfigurationError as error:
        sys.exit(f"Settings: {error}")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError:
        if settings.database_url and not settings.local_stack:
            raise
        sys.exit(
            f"The local stack is not running (data folder {data_folder()})."
            " Start it with `make run`, or set DATABASE_URL."
        )


if __name__ == "__main__":
    main()
