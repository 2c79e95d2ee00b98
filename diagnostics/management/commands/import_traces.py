"""Import traces exported from other tools, so that the first verdict has a baseline.

1. Spans of all files first, then their log records: the answers in these correct
   the calls of the spans. Both are stored by the same path as live telemetry.
2. Runs whose last call is long over are settled at once, without waiting for more spans.
3. Everything is aggregated before the import ends. A killed import can be started again:
   no event is stored twice.
"""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from diagnostics import clock
from diagnostics.alerting.backfill import import_as_seen, pause_alerts
from diagnostics.figures import plural
from diagnostics.ingest.exports.files import ExportFormat, PlacedItem, UnreadableError, read_file
from diagnostics.ingest.log_answers import PATIENCE
from diagnostics.ingest.otlp.telemetry import LogRecord, UnreadItem, nanoseconds_of
from diagnostics.ingest.receiving import Receipt, receive_logs, receive_spans
from diagnostics.ingest.span_runs import end_past_runs, settle_runs
from diagnostics.management import require_project
from diagnostics.store.aggregation import fold, waiting
from diagnostics.store.partitions import ensure_partitions

MOST_DAYS = 400
MOST_PRINTED = 20
MOST_REASONS = 5
PROGRESS_SECONDS = 5.0
PAUSE_SECONDS = 30.0
# The answers of this many items share the time budget of one request.
BATCH = 200


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
        known_format = ExportFormat(options["format"]) if options["format"] else None
        since = started_at - timedelta(days=options["days"])
        traces = TraceImport(self, project.pk, known_format, since)
        pause_alerts(project.pk)
        try:
            traces.run(options["files"])
        except UnreadableError as error:
            raise CommandError(str(error)) from error
        finally:
            import_as_seen(project.pk, started_at)
        self.stdout.write(traces.summarise(options["days"]))
        if traces.refused:
            raise CommandError(f"{plural(traces.refused, 'item')} could not be read")


@dataclass(slots=True)
class TraceImport:
    """One import: its project, the format and the earliest time of its items, and its results."""

    command: Command
    project_id: int
    format: ExportFormat | None
    since: datetime
    items: int = 0
    created: int = 0
    known: int = 0
    # Spans that are not a model call, or that report a known call.
    others: int = 0
    too_old: int = 0
    # Printed with their place, as far as they are few.
    refused: int = 0
    runs: set[str] = field(default_factory=set)
    # Why items were refused, and how often.
    reasons: Counter[str] = field(default_factory=Counter)
    shown_at: float = field(default_factory=monotonic)
    paused_at: float = field(default_factory=monotonic)

    def run(self, paths: Sequence[Path]) -> None:
        """Import files; raises UnreadableError for an unknown format."""
        ensure_partitions(self.since.date())
        with_logs = [path for path in paths if self._import_spans(path)]
        for path in with_logs:
            # Unreadable items were reported by the first pass.
            items = read_file(path, self.format, lambda _reason: None)
            records = (placed for placed in items if isinstance(placed.item, LogRecord))
            self._store(path, records, receive_logs)
        end_past_runs(self.project_id, clock.now() - PATIENCE)
        while settle_runs() or (waiting() and fold()):
            self._move(paths[-1])

    def _import_spans(self, path: Path) -> bool:
        """Import the spans of a file; return whether it has log records, too."""
        has_logs = False

        def spans() -> Iterator[PlacedItem]:
            nonlocal has_logs
            for placed in read_file(path, self.format, self._refuse):
                if isinstance(placed.item, LogRecord):
                    has_logs = True
                else:
                    yield placed

        self._store(path, spans(), receive_spans)
        return has_logs

    def _store(
        self,
        path: Path,
        placed: Iterable[PlacedItem],
        store: Callable[[int, Iterable[Any]], Receipt],
    ) -> None:
        recent = self._skip_old(placed)
        while batch := list(islice(recent, BATCH)):
            receipt = store(self.project_id, [item for _, item in batch])
            for refusal in receipt.refusals:
                self._refuse(f"{batch[refusal.index or 0].place}: {refusal.message}")
            self._count(receipt)
            self._move(path)

    def _skip_old(self, placed: Iterable[PlacedItem]) -> Iterator[PlacedItem]:
        """Skip and count items that ended before the earliest time."""
        since_ns = nanoseconds_of(self.since)
        for placed_item in placed:
            self.items += 1
            if 0 < _end_ns(placed_item) < since_ns:
                self.too_old += 1
            else:
                yield placed_item

    def _count(self, receipt: Receipt) -> None:
        self.created += receipt.accepted
        self.known += receipt.duplicates + receipt.known
        self.others += receipt.ignored - receipt.not_understood + receipt.joined
        self.runs |= receipt.runs
        self.reasons.update(refusal.message for refusal in receipt.refusals)
        for reason, count in (
            ("refused for another reason", receipt.rejected - len(receipt.refusals)),
            ("names a model and is not a known call", receipt.not_understood),
            ("an evaluation that says neither good nor bad", receipt.unclear),
        ):
            if count > 0:
                self.reasons[reason] += count
        for row in receipt.said_unchecked:
            self.reasons[f"an answer that was not checked: {row.problem}"] += row.count

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        if self.refused <= MOST_PRINTED:
            self.command.stderr.write(reason)
        elif self.refused == MOST_PRINTED + 1:
            self.command.stderr.write("further errors are counted but not printed")

    def _move(self, path: Path) -> None:
        """Print the progress now and then, and keep alerts paused meanwhile."""
        now = monotonic()
        if now - self.paused_at >= PAUSE_SECONDS:
            self.paused_at = now
            pause_alerts(self.project_id)
        if now - self.shown_at >= PROGRESS_SECONDS:
            self.shown_at = now
            line = f"{path}  {plural(self.items, 'item')}  {plural(self.created, 'event')}"
            self.command.stdout.write(line)

    def summarise(self, days: int) -> str:
        parts = [
            f"Imported {plural(self.created, 'event')} of {plural(len(self.runs), 'run')}",
            f"{self.known:,} known before",
            f"{self.others:,} other spans or records",
        ]
        if self.too_old:
            parts.append(f"{self.too_old:,} older than {plural(days, 'day')}")
        imported, total = "; ".join(parts), self.reasons.total()
        if not total:
            return f"{imported}. Not understood: none."
        reasons = self.reasons.most_common(MOST_REASONS)
        listed = "; ".join(f"{reason} ({count:,})" for reason, count in reasons)
        more = len(self.reasons) - len(reasons)
        rest = f" and {plural(more, 'other reason')}" if more else ""
        return f"{imported}. Not understood: {total:,}: {listed}{rest}."


def _end_ns(placed: PlacedItem) -> int:
    item = placed.item
    if isinstance(item, UnreadItem):
        return 0
    return item.at_ns if isinstance(item, LogRecord) else item.ended_ns or item.started_ns
