"""What one structured call costs beside the provider, which answers at once.

    python -m bench.call [--quick] [--without-peers]

floor        httpx posts, pydantic reads: nothing is checked, repaired or retried
ours         ladder, prompt, adapter, recovering parser, contract
instructor   in its default mode, and
pydantic-ai  an agent with a typed output: both in an environment of the benchmark's own
recorded     ours with all its rows, events, breakers and lease, in PostgreSQL

Each contender is a process of its own; they take turns, a share of the calls each. Medians of wall
time and of CPU time; the ratio of CPU time to the floor comes last, since it does not change with
what else the machine does. The provider's own process is in neither.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".local" / "bench" / "call"
PEERS = ("instructor", "pydantic-ai")
PACKAGES = ("instructor", "pydantic-ai-slim[openai]")
WARM_UP = 20
GOAL = 4.0


@dataclass
class Contender:
    """A process that makes calls, and what they took in milliseconds."""

    name: str
    process: "subprocess.Popen[str]"
    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)

    def make(self, calls: int) -> tuple[list[float], list[float]]:
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("a contender is spoken to through pipes")
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} gave up")
        walls, cpus = json.loads(answer)
        return walls, cpus

    def measure(self, calls: int) -> None:
        walls, cpus = self.make(calls)
        self.walls += walls
        self.cpus += cpus


def table(contenders: Sequence[Contender]) -> list[str]:
    """A line for each: medians of wall and CPU time, and the ratio to the first."""
    floor = statistics.median(contenders[0].cpus)
    lines = ["| contender | wall ms | CPU ms | CPU / floor |", "|---|---|---|---|"]
    for item in contenders:
        wall, cpu = statistics.median(item.walls), statistics.median(item.cpus)
        lines.append(f"| {item.name} | {wall:.2f} | {cpu:.2f} | {cpu / floor:.1f} |")
    return lines


def python_with(packages: Sequence[str], folder: Path) -> Path:
    """The interpreter of an environment with packages, which is made when it is not there."""
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "--quiet", "install", *packages]
        subprocess.run(command, check=True)  # noqa: S603 - our own words
        (folder / "made").touch()
    return python


def commands(*, with_peers: bool, with_rows: bool) -> Mapping[str, list[str]]:
    """The command line of each contender, the floor first."""
    # -P: the folder of the script stays out of the way of the peers' own modules.
    alone = ["-P", str(ROOT / "bench" / "call_peers.py")]
    found = {
        "floor": [sys.executable, *alone, "floor"],
        "ours": [sys.executable, "-m", "bench.call_ours", "ours"],
    }
    if with_peers:
        python = python_with(PACKAGES, FOLDER)
        found |= {name: [str(python), *alone, name] for name in PEERS}
    if with_rows:
        found["recorded"] = [sys.executable, "-m", "bench.call_ours", "recorded"]
    return found


def start(name: str, command: Sequence[str], stack: ExitStack) -> Contender:
    process = stack.enter_context(
        subprocess.Popen(  # noqa: S603 - our own words
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    stack.callback(process.terminate)
    return Contender(name, process)


def start_server(stack: ExitStack) -> str:
    """Start the instant provider; gives its address."""
    server = start("server", [sys.executable, "-m", "bench.call_server"], stack)
    if server.process.stdout is None:
        raise RuntimeError("the server tells its port through a pipe")
    return f"http://127.0.0.1:{server.process.stdout.readline().strip()}/v1"


def start_database(stack: ExitStack) -> None:
    """Start a throw-away PostgreSQL with the product's tables."""
    from tests import embedded  # noqa: PLC0415 - only the benchmark with rows needs it

    embedded.start_for_session(stack)
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, check=True)  # noqa: S603 - our own words


def take_turns(
    commands: Mapping[str, Sequence[str]], rounds: int, calls: int, stack: ExitStack
) -> list[Contender]:
    """Start contenders, warm each up, and let them make calls by turns."""
    contenders = [start(name, command, stack) for name, command in commands.items()]
    for contender in contenders:
        contender.make(WARM_UP)
    for _ in range(rounds):
        for contender in contenders:
            contender.measure(calls)
    return contenders


def run(*, rounds: int, calls: int, with_peers: bool, with_rows: bool) -> list[str]:
    """Let the contenders take turns, and report."""
    with ExitStack() as stack:
        if with_rows:
            start_database(stack)
        os.environ["FAILSOFT_LOG_LEVEL"] = "WARNING"
        url = start_server(stack)
        chosen = commands(with_peers=with_peers, with_rows=with_rows)
        asking = {name: [*command, url] for name, command in chosen.items()}
        contenders = take_turns(asking, rounds, calls, stack)
        lines = table(contenders)
        ours = next(item for item in contenders if item.name == "ours")
        ratio = statistics.median(ours.cpus) / statistics.median(contenders[0].cpus)
        return [*lines, f"ours: {ratio:.1f} times the floor, the goal is {GOAL:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls, no rows")
    parser.add_argument(
        "--without-peers", action="store_true", help="install nothing, compare with the floor"
    )
    options = parser.parse_args()
    lines = run(
        rounds=2 if options.quick else 10,
        calls=10 if options.quick else 50,
        with_peers=not options.without_peers,
        with_rows=not options.quick,
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
