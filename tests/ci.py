"""Everything that must hold before a change lands, on a fresh clone: `.ci/run`.

1. The suite runs on both cores, with one half of its slow tests; then the other steps run three at
   a time, for they wait more than they compute, each on its own servers.
2. Each test that failed runs once more, alone. One that passes then is flaky: it is named, does not
   fail the run, and has to be mended.
3. The closing line counts each test by its last result.

Everything ends within `MINUTES`: what still runs then is stopped, and the run fails.

The halves of the slow tests, the other Pythons and the language model, and the families of clients
take turns, day by day; `CI_TURN=N` repeats a turn.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGTERM
from socket import create_connection

from tests.integrations.environments import names_of_families
from tests.pythons import interpreters

ROOT = Path(__file__).resolve().parent.parent
ENDING = re.compile(r"^(?:=+ )?(\d+ [a-z ]+(?:, \d+ [a-z ]+)*) in [\d.]+s", re.MULTILINE)
TIMED_OUT = 124
MINUTES = 70
SERVICES = {
    "TEST_POSTGRES_URL": (5432, "postgresql://postgres@127.0.0.1/postgres"),
    "TEST_REDIS_URL": (6379, "redis://127.0.0.1:6379/0"),
    "TEST_AMQP_URL": (5672, "amqp://guest:guest@127.0.0.1:5672//"),
}
# Settings of the caller that would reach the servers of the tests.
FOREIGN = ("FAILSOFT_CONFIG", "FAILSOFT_DATA_DIR", "DATABASE_URL", "BROKER_URL")


@dataclass(frozen=True, slots=True)
class Step:
    """A command and the settings that it runs with."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """What a step left: its exit code, what its tests counted, and those that failed."""

    step: Step
    code: int
    counts: Counter[str]
    failed: list[str]
    output: str
    flaky: list[str] = field(default_factory=list)

    @property
    def is_bad(self) -> bool:
        """Whether the run fails: by a test that failed twice, or by anything but a test."""
        return bool(self.failed) or (self.code != 0 and not self.flaky)


def turn_of_today() -> int:
    """Return the number of today's turn, or the one that was asked for."""
    return int(os.environ.get("CI_TURN") or datetime.now(UTC).toordinal())


def steps_alone(turn: int) -> list[Step]:
    """Return the steps that use both cores."""
    steps = [_target("test-all", f"ARGS=--half={turn % 2}")]
    return steps if turn % 2 else [*steps, _target("test-model")]


def steps_beside(turn: int) -> list[Step]:
    """Return the steps that run three at a time, the longest first."""
    families, pythons = names_of_families(), list(interpreters())
    chosen = [families[(2 * turn + number) % len(families)] for number in range(2)]
    steps = [
        _target("test-faults"),
        _target("test-browser"),
        _target("test-docs"),
        _target("test-integrations", f"FAMILIES={' '.join(chosen)}"),
    ]
    if turn % 2 and pythons:
        version = ".".join(map(str, pythons[turn // 2 % len(pythons)]))
        steps.append(_target("test-pythons", f"ARGS=--only {version}"))
    if servers := dict(_servers()):
        steps.append(_target("test-services", **servers))
    return [*steps, _target("check")]


def _target(name: str, *words: str, **environment: str) -> Step:
    """Return the step of a target of the Makefile."""
    return Step(name, ["make", name, *words], environment)


def _servers() -> Iterator[tuple[str, str]]:
    """Yield the servers on the standard ports of this machine, and those that are set."""
    for name, (port, url) in SERVICES.items():
        with suppress(OSError):
            if name not in os.environ:
                create_connection(("127.0.0.1", port), timeout=1).close()
            yield name, os.environ.get(name, url)


def run_step(
    folder: Path, deadline: float, step: Step, *options: str, **environment: str
) -> Result:
    """Run a step until the deadline; pytest keeps the tests that failed in a folder of the step."""
    cache = folder / step.name
    environment = {
        **{name: value for name, value in os.environ.items() if name not in FOREIGN},
        **step.environment,
        **environment,
        "PYTEST_ADDOPTS": " ".join([f"-o cache_dir={cache}", *options]),
    }
    say(f"{step.name}: started")
    begin = time.monotonic()
    with (folder / f"{step.name}.log").open("w+b") as log:
        code = _exit_code(step, environment, log.fileno(), deadline)
        log.seek(0)
        output = log.read().decode(errors="replace")
    minutes, seconds = divmod(round(time.monotonic() - begin), 60)
    say(f"{step.name}: ended with {code} after {minutes}:{seconds:02}")
    return Result(step, code, counts_in(output), failed_in(cache), output)


def _exit_code(step: Step, environment: dict[str, str], log: int, deadline: float) -> int:
    """Run a command in a process group of its own, which ends at the deadline."""
    process = subprocess.Popen(
        step.command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    with suppress(subprocess.TimeoutExpired):
        return process.wait(max(0, deadline - time.monotonic()))
    for number in (SIGTERM, SIGKILL):
        os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
            break
    return TIMED_OUT


def counts_in(output: str) -> Counter[str]:
    """Return the sum of pytest's closing lines: `{"passed": 12, "failed": 1, ...}`."""
    counts: Counter[str] = Counter()
    for ending in ENDING.findall(output):
        for part in ending.split(", "):
            number, _, word = part.partition(" ")
            counts[word] += int(number)
    return counts


def failed_in(cache: Path) -> list[str]:
    """Return the tests that failed when they last ran with this cache."""
    path = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text())) if path.exists() else []


def repeat_failed(folder: Path, deadline: float, result: Result) -> Result:
    """Run the failed tests of a step once more, alone; return the result with those of both."""
    options = ("--last-failed", "--last-failed-no-failures=none")
    again = run_step(folder, deadline, result.step, *options, WORKERS="0")
    result.flaky = sorted(set(result.failed) - set(again.failed)) if again.counts else []
    result.failed = sorted(set(result.failed) - set(result.flaky))
    result.output = again.output
    return result


def say(text: str) -> None:
    """Print a line at once, with the time."""
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)  # noqa: T201


def show(result: Result) -> None:
    """Print the output of a step."""
    print(f"== {' '.join(result.step.command)}\n{result.output}", flush=True)  # noqa: T201


def closing_line(results: Sequence[Result]) -> str:
    """Return the counts of all tests; a step that failed without a failed test counts as one."""
    counts = sum((result.counts for result in results), Counter[str]())
    passed = counts["passed"] + sum(len(result.flaky) for result in results)
    failed = sum(len(result.failed) or result.is_bad for result in results)
    return f"{passed} passed, {failed} failed, {counts['skipped']} skipped"


def run_all(
    folder: Path, alone: Sequence[Step], beside: Sequence[Step], minutes: float = MINUTES
) -> list[Result]:
    """Run every step, and the failed tests of each once more; print their output."""
    deadline = time.monotonic() + minutes * 60
    results = []
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(3) as three:
        for pool, steps in ((one, alone), (three, beside)):
            for result in pool.map(partial(run_step, folder, deadline), steps):
                show(result)
                results.append(result)
    for result in results:
        if result.failed and result.code != TIMED_OUT:
            show(repeat_failed(folder, deadline, result))
    return results


def main() -> int:
    """Run everything; 1 when a test failed twice or anything else failed."""
    folder = Path(tempfile.mkdtemp(prefix="failsoft-ci-"))
    turn = turn_of_today()
    results = run_all(folder, steps_alone(turn), steps_beside(turn))
    shutil.rmtree(folder, ignore_errors=True)
    for result in results:
        for name in result.flaky:
            say(f"flaky: {name}")
        for name in result.failed or [f"exit code {result.code}"] * result.is_bad:
            say(f"failed: {result.step.name}: {name}")
    print(closing_line(results))  # noqa: T201
    return any(result.is_bad for result in results)


if __name__ == "__main__":
    sys.exit(main())
