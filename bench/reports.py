"""What a report costs before the mail server sees it: one body for all, against one for each.

    python -m bench.reports [--quick] [--recipients 100 1000 10000]

`copies`: the body rendered once and every reader's links signed and put in. `all`: from the
rows as well, on a throw-away PostgreSQL: deliveries claimed, readers looked up, the period
read and worded, copies made. `plain`: every mail rendered, inlined and encoded by itself.
CPU seconds of this process; the growth of the cost is printed as an exponent.
"""

import argparse
import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from datetime import time as wall_time
from functools import partial
from typing import Any

from bench.database import running_database, say
from bench.growth import exponent, timed
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.outbound.mail import compose
from diagnostics.reports.archive import mail_merge_of
from diagnostics.reports.models import Subscription
from diagnostics.reports.rendering import Letter
from diagnostics.reports.sending import Rendered, claim, copy_of, personal_values, prepare
from diagnostics.reports.subscriptions import due
from tests.diagnostics.reports.builders import make_document

GOAL_SECONDS = 0.2
GOAL_RECIPIENTS = 1_000
PLAIN_RECIPIENTS = 30
MODELS = 200


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the benchmark and print its figures; the last line is JSON."""
    sizes = _options(argv).recipients
    # A line of log for each report would hide the figures.
    logging.getLogger("diagnostics").setLevel(logging.WARNING)
    # Templates are compiled once a process.
    make_copies(1)
    copies = [timed(partial(make_copies, size)) for size in sizes]
    plain = timed(partial(make_plainly, PLAIN_RECIPIENTS)) / PLAIN_RECIPIENTS
    with running_database():
        everything = [from_rows(size) for size in sizes]
    at = sizes.index(min(sizes, key=lambda size: abs(size - GOAL_RECIPIENTS)))
    report = {
        "recipients": sizes,
        "copies_cpu_seconds": [round(cost, 4) for cost in copies],
        "all_cpu_seconds": [round(cost, 4) for cost in everything],
        "copies_exponent": _growth(sizes, copies),
        "all_exponent": _growth(sizes, everything),
        "plain_cpu_seconds": round(plain * sizes[at], 3),
        "times_cheaper_than_plain": round(plain * sizes[at] / copies[at], 1),
        "goal_seconds_at_1000": GOAL_SECONDS,
        "met": everything[at] <= GOAL_SECONDS * sizes[at] / GOAL_RECIPIENTS,
    }
    for size, one, other in zip(sizes, copies, everything, strict=True):
        say(f"{size:>7,} recipients: copies {one:.4f} s CPU, all {other:.4f} s CPU")
    say(f"plainly, {sizes[at]:,} recipients: {report['plain_cpu_seconds']} s CPU")
    say(json.dumps(report))
    return report


def _growth(sizes: Sequence[int], costs: Sequence[float]) -> float | None:
    """Return the exponent of the cost; one size has none."""
    return round(exponent(sizes, costs), 2) if len(sizes) > 1 else None


def make_copies(number: int) -> int:
    """Render a report of 200 models once and address it to so many; gives the bytes."""
    now = datetime.now(UTC)
    circular = mail_merge_of(Letter(make_document(MODELS)))
    readers = _readers(number)
    return sum(
        len(copy_of(circular, reader, f"<report-{place}@x>", [], now).encoded)
        for place, reader in enumerate(readers)
    )


def make_plainly(number: int) -> int:
    """Word, render, inline and encode the report again for every reader."""
    now, document, total = datetime.now(UTC), make_document(MODELS), 0
    for reader in _readers(number):
        letter = Letter(document)
        context = {"letter": letter, "personal": personal_values(reader, [], now)}
        made = compose(letter.subject, "report", context, [reader.address])
        total += len(made.message().as_bytes())
    return total


def from_rows(number: int) -> float:
    """Write so many subscriptions that are due, and measure what comes before sending."""
    project = Project.objects.create(slug=f"p{number}", name="Planner")
    rows = _readers(number)
    for row in rows:
        row.pk, row.project, row.next_at = None, project, clock.now()
    Subscription.objects.bulk_create(rows)
    due(clock.now())

    def work() -> None:
        rendered = Rendered()
        while claimed := claim(clock.now()):
            assert len(list(prepare(claimed, rendered))) == len(claimed)  # noqa: S101

    return timed(work)


def _readers(number: int) -> list[Subscription]:
    project = Project(slug="p", name="Planner", pk=1)
    return [
        Subscription(
            pk=place + 1,
            project=project,
            address=f"reader-{place}@example.org",
            cadence="weekly",
            weekday=0,
            at=wall_time(8),
            zone="Europe/Berlin",
            token="t" * 22,
        )
        for place in range(number)
    ]


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recipients", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(argv)
    if options.quick:
        options.recipients = [10, 100, 1000]
    return options


if __name__ == "__main__":
    main()
