"""Import of exported telemetry, by the same path as live telemetry.

1. Spans of all files first, then their log records: the answers in these correct
   the calls of the spans.
2. Runs whose last call is long over are settled at once, without waiting for more spans.
3. Everything is aggregated before the import ends. A killed import can be started again:
   no event is stored twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TypeVar

from diagnostics import clock
from diagnostics.ingest.exports.files import ExportFormat, read_file
from diagnostics.ingest.log_answers import PATIENCE
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, UnreadItem, nanoseconds_of
from diagnostics.ingest.receiving import Receipt, receive_logs, receive_spans
from diagnostics.ingest.span_runs import end_past_runs, settle_runs
from diagnostics.store.aggregation import fold, waiting
from diagnostics.store.partitions import ensure_partitions

# The answers of this many items share the time budget of one request.
BATCH = 200
Item = TypeVar("Item", Span, LogRecord)


@dataclass(slots=True)
class ImportReport:
    items: int = 0
    created: int = 0
    known: int = 0
    # Spans that are not a model call, or that report a known call.
    others: int = 0
    too_old: int = 0
    runs: set[str] = field(default_factory=set)
    # Why items were refused, and how often.
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, receipt: Receipt) -> None:
        self.created += receipt.accepted
        self.known += receipt.duplicates + receipt.known
        self.others += receipt.ignored - receipt.not_understood + receipt.joined
        self.runs |= receipt.runs
        self.reasons.update(refusal.message for refusal in receipt.refusals)
        self.reasons.update(
            {
                reason: count
                for reason, count in (
                    ("refused for another reason", receipt.rejected - len(receipt.refusals)),
                    ("names a model and is not a known call", receipt.not_understood),
                    ("an evaluation that says neither good nor bad", receipt.unclear),
                )
                if count > 0
            }
        )
        for row in receipt.said_unchecked:
            self.reasons[f"an answer that was not checked: {row.problem}"] += row.count


@dataclass(frozen=True, slots=True)
class ImportJob:
    """Files to import into a project: format, earliest time and callbacks.

    `on_refused` receives each refusal with its file and line; `on_progress` is called after
    every batch.
    """

    project_id: int
    paths: Sequence[Path]
    format: ExportFormat | None
    since: datetime
    on_refused: Callable[[str], None]
    on_progress: Callable[[Path, ImportReport], None]
    report: ImportReport = field(default_factory=ImportReport)


def import_files(job: ImportJob) -> ImportReport:
    """Import files; raises UnreadableError for an unknown format."""
    ensure_partitions(job.since.date())
    with_logs = [path for path in job.paths if _import_spans(job, path)]
    for path in with_logs:
        # Unreadable items were reported by the first pass.
        items = read_file(path, job.format, lambda _said: None)
        records = (
            (placed.place, placed.item) for placed in items if isinstance(placed.item, LogRecord)
        )
        _store(job, path, records, receive_logs)
    end_past_runs(job.project_id, clock.now() - PATIENCE)
    while settle_runs() or (waiting() and fold()):
        job.on_progress(job.paths[-1], job.report)
    return job.report


def _import_spans(job: ImportJob, path: Path) -> bool:
    """Import the spans of a file; return whether it has log records, too."""
    has_logs = False

    def spans() -> Iterator[tuple[str, Span | UnreadItem]]:
        nonlocal has_logs
        for placed in read_file(path, job.format, job.on_refused):
            if isinstance(placed.item, LogRecord):
                has_logs = True
            else:
                yield placed.place, placed.item

    _store(job, path, spans(), receive_spans)
    return has_logs


def _store(
    job: ImportJob,
    path: Path,
    placed: Iterable[tuple[str, Item | UnreadItem]],
    store: Callable[[int, Iterable[Item | UnreadItem]], Receipt],
) -> None:
    recent = _skip_old(job, placed)
    while batch := list(islice(recent, BATCH)):
        receipt = store(job.project_id, [item for _, item in batch])
        for refusal in receipt.refusals:
            job.on_refused(f"{batch[refusal.index or 0][0]}: {refusal.message}")
        job.report.add(receipt)
        job.on_progress(path, job.report)


def _skip_old(
    job: ImportJob, placed: Iterable[tuple[str, Item | UnreadItem]]
) -> Iterator[tuple[str, Item | UnreadItem]]:
    """Skip and count items that ended before the earliest time."""
    since_ns = nanoseconds_of(job.since)
    for place, item in placed:
        job.report.items += 1
        if not isinstance(item, UnreadItem) and 0 < _end_ns(item) < since_ns:
            job.report.too_old += 1
        else:
            yield place, item


def _end_ns(item: Span | LogRecord) -> int:
    return item.at_ns if isinstance(item, LogRecord) else item.ended_ns or item.started_ns
