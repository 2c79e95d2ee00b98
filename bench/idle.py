"""What the local stack costs while nothing happens: `python -m bench.idle`.

Starts `make run` without its language model and demo data in a folder of its own, waits until it
has settled, and reads CPU time and memory of every process from `/proc`. Shared pages
count once (PSS). Goals: 3 % of a core and 800 MiB.
"""

import argparse
import os
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.database import say
from bench.ingest.measuring import TICKS
from bench.servers import free_port, start
from config.local.guard import PARENT, processes
from tests.embedded import throw_away_folder

START_SECONDS = 300
SETTLE_SECONDS = 60
MIB = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds of a process, with its ended children and without, and MiB in memory."""

    name: str
    cpu: float
    own_cpu: float
    memory: float


def usage_of(root: int) -> dict[int, Usage]:
    """Return the usage of a process and of everything below it, by process id."""
    found = dict(processes())
    parents = {pid: int(fields[PARENT]) for pid, fields in found.items()}
    return {
        pid: usage
        for pid, fields in found.items()
        if _is_below(pid, root, parents) and (usage := _read(pid, fields))
    }


def _is_below(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid not in (root, 0):
        pid = parents.get(pid, 0)
    return pid == root


def _read(pid: int, fields: list[str]) -> Usage | None:
    folder = Path(f"/proc/{pid}")
    with suppress(OSError):
        ticks = [int(number) / TICKS for number in fields[11:15]]
        pss = (folder / "smaps_rollup").read_text().partition("\nPss:")[2].split()[0]
        words = (folder / "cmdline").read_text().split("\0")
        return Usage(_name(words), sum(ticks), sum(ticks[:2]), int(pss) / MIB)
    return None


def _name(words: list[str]) -> str:
    """Return a name of a few words: the module or program, and what it is there for."""
    kept = (word for word in words if word and not word.startswith(("-", "/tmp")))  # noqa: S108
    known = [*kept] or ["ending"]
    return " ".join([Path(known[0]).name, *known[1:6]])[:60]


def start_stack(port: int, stack: ExitStack) -> int:
    """Start a local stack; return the id of its process when it is ready."""
    words = ["--no-model", "--no-demo", "--port", str(port)]
    command = [sys.executable, "-m", "config.local", *words]
    # By `--data`, later starts of the checkout would use this folder too.
    data = stack.enter_context(throw_away_folder()) / "d"
    own = {**os.environ, "FAILSOFT_DATA_DIR": str(data)}
    return start(command, own, f"http://127.0.0.1:{port}/readyz", stack, START_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    seconds = parser.parse_args().minutes * 60
    with ExitStack() as stack:
        root = start_stack(free_port(), stack)
        time.sleep(SETTLE_SECONDS)
        before, begin = usage_of(root), time.monotonic()
        time.sleep(seconds)
        after, passed = usage_of(root), time.monotonic() - begin
    rows = [
        (100 * (usage.cpu - (before[pid].cpu if pid in before else 0)) / passed, usage)
        for pid, usage in after.items()
    ]
    rows.sort(key=lambda row: -row[0])
    total = sum(share for share, _ in rows), sum(usage.memory for _, usage in rows)
    for share, usage in rows:
        say(f"{share:6.2f} %  {usage.memory:6.1f} MiB  {usage.name}")
    say("{:6.2f} %  {:6.1f} MiB  all; goals 3 % and 800 MiB".format(*total))
    say(f"over {passed / 60:.0f} minutes")


if __name__ == "__main__":
    main()
