"""Import traces exported from other tools, so that the first verdict has a baseline."""

from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics import clock
from diagnostics.alerting.backfill import import_as_seen, pause_alerts
from diagnostics.figures import plural
from diagnostics.ingest.exports.files import ExportFormat, UnreadableError
from diagnostics.ingest.importing import ImportJob, ImportReport, import_files
from diagnostics.management import require_project

MOST_DAYS = 400
MOST_PRINTED = 20
MOST_REASONS = 5
PROGRESS_SECONDS = 5.0
PAUSE_SECONDS = 30.0


class Command(BaseCommand):
    help = (
        "Import traces from files: OTLP JSON (one request a line, as the Collector's file "
        "exporter writes them, or one document), observations exported from Langfuse (JSON, "
        "JSON Lines, CSV) and spans exported from Phoenix (JSON, JSON Lines); each may be "
        "gzipped. Repeating an import adds nothing. Imported events raise no alerts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
        parser.add_argument("--project", metavar="SLUG", default="default", help="default: default")
        parser.add_argument(
            "--format", choices=[*ExportFormat], help="default: detected from the file"
        )
        parser.add_argument("--days", type=int, default=30, help="how far back, default: 30")

    def handle(self, *args: object, **options: Any) -> None:
        """Run the command; it fails if a file or a line cannot be read."""
        if not 1 <= options["days"] <= MOST_DAYS:
            raise CommandError(f"--days: 1 to {MOST_DAYS}")
        project, started_at = require_project(options["project"]), clock.now()
        progress = _Progress(self, project.pk)
        job = ImportJob(
            project.pk,
            options["files"],
            ExportFormat(options["format"]) if options["format"] else None,
            started_at - timedelta(days=options["days"]),
            progress.refuse,
            progress.move,
        )
        pause_alerts(project.pk)
        try:
            report = import_files(job)
        except UnreadableError as error:
            raise CommandError(str(error)) from error
        finally:
            import_as_seen(project.pk, started_at)
        self.stdout.write(_summarise(report, options["days"]))
        if progress.refused:
            raise CommandError(f"{plural(progress.refused, 'item')} could not be read")


class _Progress:
    """Prints the progress of an import, and keeps alerts paused meanwhile."""

    def __init__(self, command: Command, project_id: int) -> None:
        self.command, self.project_id, self.refused = command, project_id, 0
        self.shown = self.paused = monotonic()

    def refuse(self, reason: str) -> None:
        self.refused += 1
        if self.refused <= MOST_PRINTED:
            self.command.stderr.write(reason)
        elif self.refused == MOST_PRINTED + 1:
            self.command.stderr.write("further errors are counted but not printed")

    def move(self, path: Path, report: ImportReport) -> None:
        now = monotonic()
        if now - self.paused >= PAUSE_SECONDS:
            self.paused = now
            pause_alerts(self.project_id)
        if now - self.shown >= PROGRESS_SECONDS:
            self.shown = now
            line = f"{path}  {plural(report.items, 'item')}  {plural(report.created, 'event')}"
            self.command.stdout.write(line)


def _summarise(report: ImportReport, days: int) -> str:
    parts = [
        f"Imported {plural(report.created, 'event')} of {plural(len(report.runs), 'run')}",
        f"{report.known:,} known before",
        f"{report.others:,} other spans or records",
    ]
    if report.too_old:
        parts.append(f"{report.too_old:,} older than {plural(days, 'day')}")
    imported, total = "; ".join(parts), report.reasons.total()
    if not total:
        return f"{imported}. Not understood: none."
    reasons = report.reasons.most_common(MOST_REASONS)
    listed = "; ".join(f"{reason} ({count:,})" for reason, count in reasons)
    more = len(report.reasons) - len(reasons)
    rest = f" and {plural(more, 'other reason')}" if more else ""
    return f"{imported}. Not understood: {total:,}: {listed}{rest}."
