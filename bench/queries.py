"""What reading costs when there is much: boards, pages, retention, room on disk.

    python -m bench.queries [--quick] [--events 1000000,10000000] [--folder DIR]

Makes that many events of the last 30 days by COPY, 200 series, counts that reach 90 days
back, and asks: the boards of 24 hours and 30 days with their baselines, the curves and
kinds of the Now page, pages of the event list at the top and deep down, with filters and
without; then it deletes and redacts again in batches, and drops the oldest day. `SQL` is
the time of the statements, `answer` of the whole answer with the reading of its rows,
`CPU` what the server's process spent. Growth is the exponent of SQL between the smallest
and the largest size; the floor is one look into an index, in the same run.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from bench.database import running_database, say
from bench.filling.loading import fill
from bench.growth import exponent, timed
from bench.query_answers import answers
from bench.query_costs import Cost, cost_of
from bench.query_upkeep import upkeep
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.store.retention import storage_sizes

KEPT = ("diagnostics_event", "diagnostics_rollup", "diagnostics_group_hour")
FLOOR = "index probe"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", default="10000,100000,1000000")
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    sizes = [2_000] if asked.quick else [int(n) for n in asked.events.split(",")]
    found = {size: measure(size, asked.folder) for size in sizes}
    say("\np95 ms: SQL / answer / CPU of the server, mean")
    say(f"{'':40}" + "".join(f"{size:>27,}" for size in sizes))
    for name in found[sizes[0]]:
        each = [found[size][name] for size in sizes]
        say(f"{name:40}{''.join(map(_shown, each))}  {_growth(each, sizes)}")
    floor, board = (found[sizes[-1]][name] for name in (FLOOR, "board of 24 hours"))
    say(f"board of 24 hours / index probe: {board.sql_ms / floor.sql_ms:.0f}")


def measure(size: int, folder: Path | None) -> Mapping[str, Cost]:
    """Fill a server of its own and give the cost of each answer."""
    with running_database(folder) as url:
        project = Project.objects.create(slug="bench", name="Bench")
        seconds = timed(lambda: fill(project.pk, size, url), perf_counter)
        say(f"{size:,} events written and counted in {seconds:.0f} s")
        now = clock.now()
        found = {name: cost_of(ask) for name, ask in answers(project.pk, now).items()}
        _print_room(size)
        return {**found, **upkeep(project.pk)}


def _print_room(size: int) -> None:
    for row in storage_sizes():
        if row.table.startswith(KEPT):
            each = row.bytes / max(row.rows, 1)
            say(
                f"  {row.table:40} {row.bytes >> 20:7,} MiB {row.rows:11,} rows"
                f" {each:6.0f} bytes/row {row.bytes / size:6.0f} bytes/event"
            )


def _shown(cost: Cost) -> str:
    return f"{cost.sql_ms:9.2f}{cost.answer_ms:9.2f}{cost.cpu_ms:9.2f}"


def _growth(each: list[Cost], sizes: list[int]) -> str:
    if len(sizes) < 2 or not each[0].sql_ms:
        return ""
    return f"exponent {exponent(sizes, [cost.sql_ms for cost in each]):+.2f}"


if __name__ == "__main__":
    main()
