"""The recovering parser: speed on broken and valid text, growth, and verdicts beside others.

    python -m bench.parse            speed and growth
    python -m bench.parse --compare  verdicts on the corpus, beside json-repair, instructor and
                                     pydantic where they are installed (they are not required)

Times are CPU time, medians; the ratio to the floor comes last.
"""

# ruff: noqa: T201 - a benchmark prints
import argparse
import importlib
import json
import math
import re
import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.growth import seconds_of
from failsoft.parsing import Recovered, recover
from failsoft.parsing.tracing import same
from tests.failsoft.parsing.corpus import Case, read_cases

SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 15
GROWTH_ROUNDS = 5
Reader = Callable[[str], Any]


def document(size: int) -> str:
    """Write a plan of about `size` characters, as a planner does."""
    steps: list[dict[str, Any]] = []
    length = 0
    while length < size:
        number = len(steps) + 1
        step = {
            "step_id": f"step_{number}",
            "title": f"Fetch page {number} and look",
            "dependencies": [f"step_{number - 1}"] if number > 1 else [],
            "tool": {"name": "http_get", "args": {"url": f"https://example.com/{number}", "n": 3}},
        }
        steps.append(step)
        length += len(json.dumps(step)) + 2
    return json.dumps({"steps": steps})


DAMAGES: dict[str, Callable[[str], str]] = {
    "fence and prose": lambda text: f"Here you are:\n```json\n{text}\n```\nDone.",
    "trailing comma": lambda text: text[:-1] + ",}",
    "unquoted keys": lambda text: re.sub(r'"(\w+)":', r"\1:", text),
    "single quotes": lambda text: text.replace('"', "'"),
    "python": lambda text: repr(json.loads(text)),
    "smart quotes": lambda text: re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text),
    "comments": lambda text: json.dumps(json.loads(text), indent=1).replace(",\n", ", // x\n"),
    "missing commas": lambda text: json.dumps(json.loads(text), indent=1).replace(",\n", "\n"),
    "double encoding": lambda text: json.dumps(text)[1:-1],
    "inner quotes": lambda text: text.replace("Fetch page", 'Fetch the "page"'),
    "cut off": lambda text: text[: -len(text) // 10],
}  # fmt: skip


def repeats(size: int) -> int:
    """Enough calls for the clock to see them."""
    return max(1, 200_000 // size)


def measure_broken() -> None:
    """Print the time of 2 KB of each kind of damage."""
    print("2 KB of broken JSON, CPU time (goal: <= 1 ms)")
    text, slowest = document(1_900), 0.0
    for name, damage in DAMAGES.items():
        broken = damage(text)
        seconds = seconds_of(partial(recover, broken), ROUNDS, 20) * 2_048 / len(broken)
        slowest = max(slowest, seconds)
        print(f"  {name:<18} {seconds * 1000:6.2f} ms")
    print(f"  slowest: {slowest * 1000:.2f} ms")


def measure_valid() -> None:
    """Print the ratio to json.loads on valid text, both timed in turns."""
    print("valid JSON, ratio to json.loads (goal: <= 1.2)")
    for size in SIZES:
        text, repeat = document(size), repeats(size)
        ratios: list[float] = []
        for _ in range(5):
            floor = seconds_of(partial(json.loads, text), ROUNDS, repeat)
            ratios.append(seconds_of(partial(recover, text), ROUNDS, repeat) / floor)
        print(f"  {size:>9} characters  {statistics.median(ratios):.2f}")


def measure_growth() -> None:
    """Print the exponent with which time grows with size, from 1 KB to 1 MB."""
    print("growth from 1 KB to 1 MB (goal: exponent <= 1.1)")
    for name, damage in DAMAGES.items():
        points = []
        for size in (1_000, 30_000, 1_000_000):
            broken = damage(document(int(size * 0.6)))
            seconds = seconds_of(partial(recover, broken), GROWTH_ROUNDS, repeats(size))
            points.append((math.log(len(broken)), math.log(seconds)))
        print(f"  {name:<18} {statistics.linear_regression(*zip(*points, strict=True)).slope:.2f}")


def readers() -> dict[str, Reader]:
    """Return ours, and the others that are installed; each raises when it refuses."""
    found: dict[str, Reader] = {"failsoft": _read_ours, "json.loads": json.loads}
    for name, build in (("pydantic", _pydantic), ("json-repair", _json_repair),
                        ("instructor", _instructor)):  # fmt: skip
        try:
            found[name] = build()
        except ImportError:
            print(f"  {name} is not installed", file=sys.stderr)
    return found


def _read_ours(text: str) -> object:
    found = recover(text)
    if not isinstance(found, Recovered):
        raise TypeError(found.message)
    return found.value


def _pydantic() -> Reader:
    from_json: Reader = importlib.import_module("pydantic_core").from_json
    return from_json


def _json_repair() -> Reader:
    repair: Reader = importlib.import_module("json_repair").loads
    return repair


def _instructor() -> Reader:
    extract = importlib.import_module("instructor.utils").extract_json_from_codeblock
    return lambda text: json.loads(extract(text))


def judge(read: Reader, case: Case) -> str:
    """Say what a reader makes of a case: right, wrong, refused, or accepted though bad."""
    try:
        value = read(case.text)
    except Exception:  # noqa: BLE001 - whatever others raise is a refusal
        return "refused" if case.is_recoverable else "right"
    if value is None or value == "" or not isinstance(value, dict | list):
        return "refused" if case.is_recoverable else "right"
    if not case.is_recoverable:
        return "accepted"
    return "right" if same(value, case.value) else "wrong"


def compare() -> None:
    """Print what each reader makes of the corpus, as a table."""
    cases = [case for case in read_cases() if case.finish_reason is None]
    good = [case for case in cases if case.is_recoverable]
    bad = [case for case in cases if not case.is_recoverable]
    print(f"| reader | recovered of {len(good)} | wrong value | bad accepted of {len(bad)} |")
    print("|---|---|---|---|")
    for name, read in readers().items():
        of_good = [judge(read, case) for case in good]
        of_bad = [judge(read, case) for case in bad]
        cells = of_good.count("right"), of_good.count("wrong"), of_bad.count("accepted")
        print(f"| {name} | {cells[0]} | {cells[1]} | {cells[2]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--compare", action="store_true", help="verdicts beside others")
    parser.add_argument("--quick", action="store_true", help="leave out the growth")
    asked = parser.parse_args()
    if asked.compare:
        compare()
        return
    measure_broken()
    if not asked.quick:
        measure_growth()
    measure_valid()


if __name__ == "__main__":
    main()
