"""The executor beside its peers, on the same embedded PostgreSQL and broker.

    python -m bench.executor [--quick]

Durable steps a second: the inline runner with repeatable tools and with tools that have
side effects, LangGraph with its PostgresSaver, DBOS; the floor, one narrow row updated
and committed by psycopg; the distributed runner and a bare Celery group of the same
no-op. Rounds are interleaved, medians compared. Then how validation, pure execution and
the inline runner grow with the number of steps, in time and memory. The peers are
installed once, into a folder of their own under .local/bench/.
"""

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import tracemalloc
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench.call import python_with
from bench.database import running_server, say
from bench.executor_plans import make_plan
from bench.growth import exponent, seconds_of
from bench.servers import ROOT
from failsoft.plans.execution import Seams, execute
from failsoft.plans.validation import validate_payload
from tests.embedded import running_broker

PEERS = Path(__file__).with_name("executor_peers")
VENV = ROOT / ".local" / "bench" / "executor"
PACKAGES = (
    "langgraph==1.2.22",
    "langgraph-checkpoint-postgres==3.2.0",
    "dbos==3.4.0",
    "celery[redis]==5.7.0",
    "psycopg[binary]==3.3.9",
)
GOALS = {
    "repeatable / LangGraph": 50,
    "repeatable / DBOS": 100,
    "side effects / LangGraph": 2,
    "side effects / DBOS": 4,
    "distributed / Celery group": 0.8,
}
# Printed without a goal: how near a commit for each step comes to a commit alone.
SHOWN = ("side effects / floor",)
Rates = Mapping[str, float]


class Bench:
    """Servers, environments and the peers' Python."""

    def __init__(self, stack: ExitStack) -> None:
        self.python = python_with(PACKAGES, VENV)
        self.database = stack.enter_context(running_server())
        self.broker = stack.enter_context(running_broker())
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("FAILSOFT_")},
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DATABASE_URL": self.database,
            "BROKER_URL": self.broker,
            "BENCH_BROKER_URL": self.broker,
            "FAILSOFT_SECRET_KEY": secrets.token_urlsafe(50),
            "FAILSOFT_WORKING_KEY": b64encode(secrets.token_bytes(32)).decode(),
            "FAILSOFT_LOG_LEVEL": "ERROR",
            "PYTHONPATH": str(ROOT),
            "CELERY_SKIP_CHECKS": "1",
        }
        self.ours("migrate")

    def ours(self, *words: str, of: str = "seconds") -> float:
        """Return the seconds of one of our measures, or something else it tells."""
        said = self._run([sys.executable, "-m", "bench.executor_ours", *words])
        return float(json.loads(said.splitlines()[-1]).get(of, 0))

    def peer(self, name: str, *words: str) -> float:
        """Return the seconds of a peer's measure."""
        said = self._run([str(self.python), str(PEERS / f"{name}.py"), *words])
        return float(said.splitlines()[-1])

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(  # noqa: S603 - our own words
            command, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{command[1:]}: {done.stderr[-2000:]}")
        return done.stdout

    @contextmanager
    def worker(self, python: str, app: str, queues: str, cwd: Path) -> Iterator[None]:
        """Run a Celery worker of two processes."""
        words = [python, "-m", "celery", "-A", app, "worker", "--queues", queues]
        words += ["--concurrency", "2", "--loglevel", "ERROR", "--without-gossip"]
        process = subprocess.Popen(  # noqa: S603 - our own words
            [*words, "--without-mingle"],
            cwd=cwd,
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=60)

    def distributed(self, steps: int) -> float:
        """Return the seconds of a distributed run on two processes."""
        queues = "steps,plan,fold"
        with self.worker(sys.executable, "config.celery", queues, ROOT):
            return self.ours("distributed", str(steps))

    def celery_group(self, steps: int) -> float:
        """Return the seconds of a bare group on two processes."""
        with self.worker(str(self.python), "celery_group", "bench", PEERS):
            return self.peer("celery_group", str(steps))


def measure_round(bench: Bench, quick: bool) -> dict[str, float]:
    """Return steps a second of everything, each measured once."""
    many, few = (1_000, 200) if quick else (5_000, 500)
    wide = 500 if quick else 1_000
    seconds: dict[str, tuple[int, Callable[[], float]]] = {
        "LangGraph": (few, lambda: bench.peer("langgraph_steps", bench.database, str(few))),
        "repeatable": (many, lambda: bench.ours("inline", "noop", "chain", str(many))),
        "DBOS": (few, lambda: bench.peer("dbos_steps", bench.database, str(few))),
        "side effects": (few, lambda: bench.ours("inline", "effect", "chain", str(few))),
        "floor": (few, lambda: bench.ours("floor", str(few))),
        "repeatable, wide": (many, lambda: bench.ours("inline", "noop", "wide", str(many))),
        "Celery group": (wide, lambda: bench.celery_group(wide)),
        "distributed": (wide, lambda: bench.distributed(wide)),
    }
    rates = {}
    for name, (steps, run) in seconds.items():
        rates[name] = steps / run()
        say(f"  {name:<20} {rates[name]:10.0f} steps/s")
    return rates


def ratios(rounds: list[Rates]) -> dict[str, float]:
    """Return the ratios of the medians, by the names of their goals."""
    medians = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    return {
        goal: medians[goal.split(" / ")[0]] / medians[goal.split(" / ")[1]]
        for goal in (*GOALS, *SHOWN)
    }


def pure_growth(shape: str, sizes: list[int]) -> Iterator[str]:
    """Say what validating and executing a plan costs at several sizes."""
    seams = Seams(lambda name, args, context: args)
    plans = {size: make_plan(size, shape) for size in sizes}
    for name, work in (
        ("validation", validate_payload),
        ("pure execution", lambda plan: execute(plan, seams)),
    ):
        seconds = [seconds_of(partial(work, plan), 5) for plan in plans.values()]
        shown, grows = _each(sizes, seconds), exponent(sizes, seconds)
        yield f"{name}, {shape}: {shown} us/step at {sizes}; exponent {grows:.2f}"
    memory = ", ".join(f"{_bytes_of(plan) / size:.0f}" for size, plan in plans.items())
    yield f"pure execution, {shape}: {memory} bytes/step at {sizes}"


def inline_growth(bench: Bench, shape: str, sizes: list[int]) -> str:
    """Say what a step of a stored run costs at several sizes."""
    words = ("inline", "noop", shape)
    seconds = [bench.ours(*words, str(size), of="cpu_seconds") for size in sizes]
    kept = [bench.ours("memory", shape, str(size), of="bytes") for size in sizes]
    memory = ", ".join(f"{size:.0f}" for size in kept)
    return (
        f"inline runner, {shape}: {_each(sizes, seconds)} us of CPU/step at {sizes};"
        f" exponent {exponent(sizes, seconds):.2f}; {memory} bytes/step"
    )


def _each(sizes: Sequence[int], seconds: Sequence[float]) -> str:
    """Write the microseconds of a step at each size."""
    times = zip(sizes, seconds, strict=True)
    return ", ".join(f"{taken / size * 1e6:.1f}" for size, taken in times)


def _bytes_of(plan: object) -> int:
    seams = Seams(lambda name, args, context: args)
    tracemalloc.start()
    execute(plan, seams)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sizes = [100, 1_000, 10_000]
    for shape in ("chain", "layers", "wide"):
        for line in pure_growth(shape, sizes):
            say(line)
    with ExitStack() as stack:
        bench = Bench(stack)
        rounds: list[Mapping[str, float]] = []
        for number in range(1 if options.quick else options.rounds):
            say(f"round {number + 1}")
            rounds.append(measure_round(bench, options.quick))
        sizes = sizes[:2] if options.quick else sizes
        for shape in ("chain", "layers", "wide"):
            say(inline_growth(bench, shape, sizes))
    for name, ratio in ratios(rounds).items():
        goal = f"   (goal {GOALS[name]:g})" if name in GOALS else ""
        say(f"{name:<28} {ratio:8.2f}{goal}")


if __name__ == "__main__":
    main()
