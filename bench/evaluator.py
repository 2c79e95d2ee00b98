"""What a minute of the evaluator costs, statuses and verdict included. Goal: one second of CPU.

    python -m bench.evaluator [--quick] [--events 100000] [--folder DIR]

A project of 200 series with that many events, and the demo beside them, 224 in all, on a throw-away
PostgreSQL; medians of the minutes after all detectors have begun.
"""

import argparse
from datetime import datetime
from pathlib import Path
from statistics import median
from time import process_time

from django.db import connection

from agents.demo.loading import load
from bench.database import running_database, say, server_cpu_seconds
from bench.filling.loading import fill as fill_events
from config.gc_tuning import freeze_loaded_objects
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.counts import MINUTE
from diagnostics.alerting.evaluator import evaluate
from diagnostics.alerting.rule_rows import ensure_standard_rules, rules_of
from diagnostics.store.models import Series
from diagnostics.store.windows import floor


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.evaluator", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--events", type=int, default=100_000, help="of the evaluator's minute")
    parser.add_argument("--folder", type=Path, default=None, help="whose disk is used")
    options = parser.parse_args()
    with running_database(options.folder) as url:
        say_minutes(5 if options.quick else 30, options.events, url)
    return 0


def say_minutes(rounds: int, events: int, url: str) -> None:
    """Print what the evaluator costs a minute with new calls, once all detectors have begun."""
    project = Project.objects.create(slug="minutes", name="Minutes")
    fill_events(project.pk, events, url)
    now = floor(clock.now(), MINUTE)
    load(project, now, volume=0.1)
    ensure_standard_rules()
    freeze_loaded_objects()  # As a worker's process does.
    # Detectors begin in the first ones.
    taken = [minute_cpu(now - number * MINUTE) for number in reversed(range(rounds + 10))][10:]
    ours, server = (median(part) for part in zip(*taken, strict=True))
    series = Series.objects.filter(project=project).count()
    rules = len(rules_of(project.pk))
    say(
        f"a minute of {series} series, {events:,} events, {rules} rules: CPU {ours + server:.2f} s"
        f" ({ours:.2f} evaluator, {server:.2f} database), at most {max(map(sum, taken)):.2f} s"
    )


def minute_cpu(at: datetime) -> tuple[float, float]:
    """Evaluate a minute; gives the CPU seconds of this process and of its database server."""
    pids = [connection.connection.info.backend_pid]
    ours, server = process_time(), server_cpu_seconds(pids)
    evaluate(at)
    return process_time() - ours, server_cpu_seconds(pids) - server


if __name__ == "__main__":
    raise SystemExit(main())
