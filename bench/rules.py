"""What a look at all alert rules costs beside the one query that it needs.

    python -m bench.rules [--quick] [--events 100000] [--folder DIR]

200 series with six hours of minutes, and 10, 100, 1,000 rules, each on one model, on a throw-away
PostgreSQL. `query`: the grouped query alone. `look`: the query, the rules' rows of state, and
every rule judged in Python. `each`: the query once for every rule.
Medians in milliseconds; the ratio of look to query comes last.

Then what a minute of the evaluator costs, statuses and verdict included: a project of 200 series
with that many events, and the demo beside them, 224 in all. Goal: one second of CPU.
"""

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from django.db import connection

from agents.demo.loading import load
from bench.database import running_database, say, server_cpu_seconds
from bench.filling.loading import fill as fill_events
from bench.growth import timed
from config.gc_tuning import freeze_loaded_objects
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.counts import MINUTE, freeze, read_counts
from diagnostics.alerting.evaluator import evaluate
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.saved_states import ensure_standard_rules, rules_of
from diagnostics.alerting.series_detectors import judge_series, results_of
from diagnostics.alerting.slice_evaluation import evaluate_slices
from diagnostics.analysis.detectors.thresholds import LONG_WINDOWS
from diagnostics.store.models import Series
from diagnostics.store.windows import floor

SERIES, MINUTES, RULES = 200, 360, (10, 100, 1000)
COLUMNS = ("degraded", "runs")
FILL = """
INSERT INTO diagnostics_series (project_id, key, node, provider, model)
SELECT %(project)s, gen_random_uuid(), 'plan', 'acme', 'm-' || number
FROM generate_series(1, %(series)s) AS number;
INSERT INTO diagnostics_rollup_minute (project_id, bucket, series_id, runs, degraded)
SELECT %(project)s, %(slot)s - minute * interval '1 minute', id, 10, (random() < 0.3)::int
FROM diagnostics_series, generate_series(0, %(minutes)s - 1) AS minute;
ANALYZE;
"""


def fill(slot: datetime) -> Project:
    """Make the series and their minutes."""
    project = Project.objects.create(slug="bench", name="Bench")
    asked: dict[str, Any] = {
        "project": project.pk,
        "series": SERIES,
        "minutes": MINUTES,
        "slot": slot,
    }
    with connection.cursor() as cursor:
        for text in FILL.split(";")[:-1]:
            cursor.execute(text, asked if "%(" in text else None)
        freeze(project.pk, slot - MINUTES * MINUTE, slot - 14 * MINUTE)
        cursor.execute("ANALYZE diagnostics_alert_minute")
    return project


def add_rules(project: Project, number: int) -> None:
    """Make rules, each on one model, until there are so many."""
    AlertRule.objects.bulk_create(
        AlertRule(
            project=project,
            name=f"r{place}",
            filter=f"model=m-{place % SERIES + 1}",
            group_by=[],
            signal="degraded_ratio",
            detector="threshold",
            parameters={"limit": 0.05},
        )
        for place in range(project.alert_rules.count(), number)
    )


def in_turns(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Give the medians of some rounds in milliseconds, after one that does not count.

    By turns, so that a machine that is busy now and then is so to all of them.
    """
    taken = [[1000 * timed(work, perf_counter) for work in works] for _ in range(rounds + 1)]
    return list(map(median, zip(*taken[1:], strict=True)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--events", type=int, default=100_000, help="of the evaluator's minute")
    parser.add_argument("--folder", type=Path, default=None, help="whose disk is used")
    options = parser.parse_args()
    rounds = 5 if options.quick else 30
    with running_database(options.folder) as url:
        slot = floor(clock.now(), MINUTE)
        project = fill(slot)
        say(f"{'rules':>6}{'query ms':>10}{'look ms':>10}{'each ms':>10}{'ratio':>8}")
        for number in RULES:
            add_rules(project, number)
            rules = rules_of(project.pk)

            def query() -> object:
                return read_counts(project.pk, slot, COLUMNS, LONG_WINDOWS)

            def look() -> object:
                judge_series(project.pk, slot)
                return evaluate_slices(project.pk, rules, slot, results_of(project.pk, slot))  # noqa: B023

            floor_ms, look_ms = in_turns(rounds, query, look)
            say(
                f"{number:6d}{floor_ms:10.1f}{look_ms:10.1f}{floor_ms * number:10.0f}"
                f"{look_ms / floor_ms:8.2f}"
            )
        project.delete()
        say_minutes(rounds, options.events, url)
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
