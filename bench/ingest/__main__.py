"""Ingestion: our endpoint beside a plain one, the floor, Arize Phoenix and Bugsink.

    python -m bench.ingest [--rounds 5] [--quick] [--no-peers]

All contenders get the same events, in turns, in one run. Figures are CPU time per event in
microseconds: the server's process and PostgreSQL, medians of the rounds; ratios come last.
The constant view is /healthz, which the event loop answers by itself. Phoenix
and Bugsink are installed once, under .local/bench/, and run on SQLite as they come.
"""

# ruff: noqa: T201 - a benchmark prints
import argparse
import gzip
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from django.core.management import call_command

from bench.ingest.contenders import Contenders
from bench.servers import NO_LIMITS
from tests import embedded

SIZES = (1, 10, 100, 1000)
PLAIN_SIZES = (1, 100)
PHOENIX_BATCH = 512
PORTS = {"ours": 9280, "plain": 9281, "phoenix": 9282, "bugsink": 9284}
URL = "/api/v1/events"
Costs = dict[str, list[float]]


def main() -> None:
    """Measure and print, in a process of its own that begins with a database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    if embedded.DATABASE_MARK not in os.environ:
        sys.exit(_run_again())
    call_command("migrate", verbosity=0)
    with ExitStack() as stack:
        bench = Bench(stack, is_quick=options.quick, has_peers=not options.no_peers)
        costs: Costs = defaultdict(list)
        for turn in range((1 if options.quick else options.rounds) + 1):
            for name, cost in bench.round():
                # The first turn warms up caches and plans.
                if turn:
                    costs[name].append(cost)
        _print(costs)


def _run_again() -> int:
    """Run this command beside a throw-away PostgreSQL."""
    with ExitStack() as stack:
        embedded.start_for_session(stack)
        words = [sys.executable, "-m", "bench.ingest", *sys.argv[1:]]
        env = {**os.environ, **NO_LIMITS}
        return subprocess.run(words, check=False, env=env).returncode  # noqa: S603


class Bench:
    """All contenders, running."""

    def __init__(self, stack: ExitStack, *, is_quick: bool, has_peers: bool) -> None:
        folder = stack.enter_context(embedded.throw_away_folder())
        self._all = Contenders(stack, PORTS, Path(folder), has_peers=has_peers)
        self._events = 200 if is_quick else 2000

    def round(self) -> Iterator[tuple[str, float]]:
        """Let each do its work once; CPU microseconds per event."""
        yield from self._http()
        yield from self._in_process()
        yield from self._all.peers(PHOENIX_BATCH, self._events // 10)

    def _http(self) -> Iterator[tuple[str, float]]:
        yield "constant view", self._all.ask("ours", "/healthz", self._count(1))
        for size in SIZES:
            count = self._count(size)
            send = partial(self._all.post, "ours", size, count)
            yield f"ours {size} json", send(pack=None)
            yield f"ours {size} gzip", send(pack=gzip.compress)
            if size in PLAIN_SIZES:
                yield f"plain {size}", self._all.post("plain", size, count)

    def _in_process(self) -> Iterator[tuple[str, float]]:
        for size in (1, 100, 1000):
            ours, server, floor = self._all.in_process(size, self._count(size))
            yield f"in process {size}", ours
            yield f"of it PostgreSQL {size}", server
            yield f"copy {size}", floor

    def _count(self, size: int) -> int:
        return max(self._events // max(size, 10), 2)


RATIOS: Sequence[tuple[str, str, str, Callable[[float], bool], str]] = (
    ("in process 100", "copy 100", "<= 2", lambda r: r <= 2, "in process over COPY, 100"),
    ("in process 1000", "copy 1000", "<= 2", lambda r: r <= 2, "in process over COPY, 1000"),
    ("plain 100", "ours 100 json", ">= 12", lambda r: r >= 12, "plain over ours, batch 100"),
    ("ours 1 json", "constant view", "-", lambda _: True, "single event over constant view"),
    ("plain 1", "ours 1 json", ">= 4", lambda r: r >= 4, "plain over ours, single event"),
    ("phoenix 512", "ours 100 json", ">= 40", lambda r: r >= 40, "Phoenix over ours"),
    ("bugsink 1", "ours 100 json", ">= 150", lambda r: r >= 150, "Bugsink over ours"),
)  # fmt: skip


def _print(costs: Costs) -> None:
    middle: dict[str, Any] = {name: median(values) for name, values in costs.items()}
    print(f"{'':24} {'CPU us/event':>14} {'events/s per core':>18}")
    for name, cost in middle.items():
        print(f"{name:24} {cost:14.1f} {1e6 / cost if cost else 0:18,.0f}")
    print()
    for over, under, goal, is_met, words in RATIOS:
        if over in middle and under in middle and middle[under]:
            ratio = middle[over] / middle[under]
            verdict = "ok" if is_met(ratio) else "MISSED"
            print(f"{words:32} {ratio:8.1f}  (goal {goal}) {verdict}")


if __name__ == "__main__":
    main()
