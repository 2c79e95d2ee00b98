"""What senders are told of their items: answers that nothing checked, and times that are off.

Of unchecked answers: how many, at which node, why, and what to do about it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from diagnostics.figures import plural
from diagnostics.ingest.schemas import MAX_STEPS
from diagnostics.store.windows import TimeMark
from failsoft.events import PostedEvent, UncheckedReason

UncheckedCounts = Counter[tuple[str, UncheckedReason]]
"""The number of answers by node and reason."""

PROBLEMS: Mapping[UncheckedReason, tuple[str, str]] = {
    UncheckedReason.NO_SCHEMA: (
        "no schema, or none that can be read",
        "register a schema (PUT /api/v1/schemas/{node}), or send output_mode json"
        " (gen_ai.output.type) if any JSON will do",
    ),
    UncheckedReason.NO_ANSWER: (
        "the telemetry has no text of the answer",
        "enable content capture"
        " (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY for OpenTelemetry's own"
        " instrumentations)",
    ),
    UncheckedReason.OVER_BUDGET: (
        "checking takes more than an answer or a request may",
        "send smaller batches (OTEL_BSP_MAX_EXPORT_BATCH_SIZE=128); one answer may take"
        f" {MAX_STEPS:,} steps",
    ),
}
"""What is missing, and what to do."""
SENTENCES = {
    TimeMark.AHEAD: "{} more than 5 minutes ahead of this server's clock, counted on arrival",
    TimeMark.LATE: "{} more than 15 minutes late: in charts, but not in alert rules",
}


@dataclass(frozen=True, slots=True)
class UncheckedAnswers:
    node: str
    reason: UncheckedReason
    count: int

    @property
    def problem(self) -> str:
        return PROBLEMS[self.reason][0]

    @property
    def advice(self) -> str:
        return PROBLEMS[self.reason][1].format(node=self.node)

    @property
    def sentence(self) -> str:
        were = "was" if self.count == 1 else "were"
        return (
            f"{plural(self.count, 'answer')} of node {self.node} {were} not checked:"
            f" {self.problem}; {self.advice}"
        )


def count_unchecked(events: Iterable[PostedEvent]) -> UncheckedCounts:
    return Counter((event.node, event.unchecked) for event in events if event.unchecked)


def rows_of(counts: Mapping[tuple[str, UncheckedReason], int]) -> list[UncheckedAnswers]:
    """Return the counts as rows, the largest first."""
    rows = [UncheckedAnswers(node, reason, count) for (node, reason), count in counts.items()]
    return sorted(rows, key=lambda row: (-row.count, row.node))


def sentences_of(marks: Mapping[str, int]) -> Mapping[TimeMark, str]:
    """Return a sentence for each mark that new items have."""
    return {
        mark: sentence.format(plural(marks[mark], "item"))
        for mark, sentence in SENTENCES.items()
        if marks.get(mark)
    }


def time_warnings(marks: Mapping[str, int]) -> list[dict[str, str]]:
    return [
        {"path": "", "code": mark.value, "message": sentence}
        for mark, sentence in sentences_of(marks).items()
    ]
