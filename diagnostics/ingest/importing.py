"""Exported telemetry into the tables, through the door that live telemetry takes.

1. Spans of all files first, then their log records: what these tell of an answer corrects
   the call that its span told.
2. Runs whose last call is long over are placed at once; nobody waits for more of them.
3. Everything is counted before it ends. Whoever is killed begins again: no event is stored
   twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TypeVar

from diagnostics import clock
from diagnostics.ingest.exports.files import ExportFormat, read_file
from diagnostics.ingest.otlp.telemetry import LogRecord, Span
from diagnostics.ingest.receiving import PATIENCE, Intake, Receipt, store_logs, store_spans
from diagnostics.ingest.span_runs import end_past_runs, settle_runs
from diagnostics.store.aggregation import fold, waiting
from diagnostics.store.partitions import ensure_partitions
from failsoft.identifiers import EPOCH

# The answers of so many items share the time of one request.
BATCH = 200
MICROSECOND_NS = 1000
Item = TypeVar("Item", Span, LogRecord)


@dataclass(slots=True)
class ImportReport:
    """What became of the items of an import."""

    items: int = 0
    created: int = 0
    known: int = 0
    # Spans that are no call of a model, or another account of a call.
    others: int = 0
    too_old: int = 0
    runs: set[str] = field(default_factory=set)
    # Why items were not understood, and how many each time.
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, receipt: Receipt) -> None:
        """Add what became of a batch."""
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
                    ("a call without the text of its answer", receipt.unanswered),
                    ("an answer that was not checked", receipt.not_judged),
                )
                if count > 0
            }
        )


@dataclass(frozen=True, slots=True)
class Import:
    """Files to import into a project: of which format, since when, and who is told of it.

    `said` hears of what is refused, with its file and line, `moved` after every batch.
    """

    project_id: int
    paths: Sequence[Path]
    format: ExportFormat | None
    since: datetime
    said: Callable[[str], None]
    moved: Callable[[Path, ImportReport], None]
    report: ImportReport = field(default_factory=ImportReport)


def import_files(asked: Import) -> ImportReport:
    """Import files; UnreadableError for one that is none of the formats."""
    ensure_partitions(asked.since.date())
    with_logs = [path for path in asked.paths if _import_spans(asked, path)]
    for path in with_logs:
        _import_logs(asked, path)
    end_past_runs(asked.project_id, clock.now() - PATIENCE)
    while settle_runs() or (waiting() and fold()):
        asked.moved(asked.paths[-1], asked.report)
    return asked.report


def _import_spans(asked: Import, path: Path) -> bool:
    """Import the spans of a file; returns whether it has log records, too."""
    has_logs = False

    def spans() -> Iterator[tuple[str, Span | None]]:
        nonlocal has_logs
        for placed in read_file(path, asked.format, asked.said):
            if isinstance(placed.item, LogRecord):
                has_logs = True
            else:
                yield placed.place, placed.item

    _store(asked, path, spans(), store_spans)
    return has_logs


def _import_logs(asked: Import, path: Path) -> None:
    # What cannot be read was said the first time.
    found = read_file(path, asked.format, lambda _said: None)
    records = ((one.place, one.item) for one in found if isinstance(one.item, LogRecord))
    _store(asked, path, records, store_logs)


def _store(
    asked: Import,
    path: Path,
    placed: Iterable[tuple[str, Item | None]],
    store: Callable[[Intake, Iterable[Item | None]], Receipt],
) -> None:
    intake, recent = Intake(asked.project_id), _recent(asked, placed)
    while batch := list(islice(recent, BATCH)):
        receipt = store(intake, [item for _, item in batch])
        for refusal in receipt.refusals:
            asked.said(f"{batch[refusal.index or 0][0]}: {refusal.message}")
        asked.report.add(receipt)
        asked.moved(path, asked.report)


def _recent(
    asked: Import, placed: Iterable[tuple[str, Item | None]]
) -> Iterator[tuple[str, Item | None]]:
    """Leave out what ended before the import begins, and count it."""
    since_ns = (asked.since - EPOCH) // timedelta(microseconds=1) * MICROSECOND_NS
    for place, item in placed:
        asked.report.items += 1
        if item is not None and 0 < _ended(item) < since_ns:
            asked.report.too_old += 1
        else:
            yield place, item


def _ended(item: Span | LogRecord) -> int:
    return item.at_ns if isinstance(item, LogRecord) else item.ended_ns or item.started_ns
