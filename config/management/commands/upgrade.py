"""`manage.py upgrade`: migrate with a way back; `--back DUMP` takes it."""

import os
import subprocess
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from diagnostics.figures import plural

OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
APPS = ("diagnostics", "plans", "agents")
# As a new database has it; the dump holds what is below.
EMPTY = (
    "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC;"
    " COMMENT ON SCHEMA public IS 'standard public schema'"
)


class Command(BaseCommand):
    """Dump the database, migrate it and check it; a failure restores the dump."""

    help = "Upgrade the database with a dump to go back to; stop web, workers and beat first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--back", type=Path, metavar="DUMP", help="restore this dump instead")

    def handle(self, *args: object, **options: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(OTHERS)
            (others,) = cursor.fetchone()
        if others:
            raise CommandError(
                f"{plural(others, 'other connection')}: stop web, workers and beat first"
            )
        if options["back"]:
            self._restore(options["back"])
        else:
            self._upgrade()

    def _upgrade(self) -> None:
        executor = MigrationExecutor(connection)
        if newer := _unknown_migrations(executor.loader):
            named = ", ".join(newer)
            raise CommandError(f"the database is of a newer version, with {named}: run that one")
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan:
            folder = Path(settings.CONFIGURATION.data_dir, "dumps")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            dump = folder / f"before-upgrade-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.dump"
            try:
                _run("pg_dump", "--format=custom", "--no-owner", f"--file={dump}")
            except CommandError:
                dump.unlink(missing_ok=True)
                raise
            self.stdout.write(f"Dump: {dump}")
            try:
                call_command("migrate", verbosity=0, interactive=False)
                call_command("check", databases=["default"], stdout=self.stdout)
            except BaseException as error:
                self._restore(dump)
                raise CommandError(f"{error}; the database is as it was") from error
            self.stdout.write(f"{plural(len(plan), 'migration')} applied.")
            self.stdout.write(f"Way back: upgrade --back {dump}, then the previous version")
        else:
            self.stdout.write("The database is up to date.")
        call_command("collectstatic", interactive=False, verbosity=0)

    def _restore(self, dump: Path) -> None:
        _run("pg_restore", "--list", str(dump), connects=False)
        connection.rollback()
        with connection.cursor() as cursor:
            cursor.execute(EMPTY)
        connection.close()
        _run("pg_restore", "--no-owner", "--exit-on-error", str(dump))
        self.stdout.write(f"Restored: {dump}")


def _unknown_migrations(loader: MigrationLoader) -> list[str]:
    """Return the applied migrations of our apps that this version does not have."""
    known = set(loader.disk_migrations).union(
        *(migration.replaces for migration in loader.disk_migrations.values())
    )
    unknown = set(loader.applied_migrations) - known
    return sorted(f"{app}.{name}" for app, name in unknown if app in APPS)


def _run(program: str, *words: str, connects: bool = True) -> None:
    """Run a program of PostgreSQL; it creates files for this user only."""
    url = settings.CONFIGURATION.database_url
    server = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    password = server.pop("password", "")
    to = [f"--dbname={make_conninfo(**server)}"] if connects else []
    env = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    try:
        result = subprocess.run(  # noqa: S603 - no input of others
            [program, *to, *words],
            env=env,
            umask=0o077,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise CommandError(f"{program}: {error.strerror}; install PostgreSQL's client") from error
    if result.returncode:
        why = result.stderr.strip() or f"exit code {result.returncode}"
        raise CommandError(f"{program}: {why}")
