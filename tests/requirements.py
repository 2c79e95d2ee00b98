"""List every requirement row with its tests: `python -m tests.requirements`."""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "requirements.md"

_ROW = re.compile(r"^\| (?P<id>(?:S[0-4]|M)-\d+) \| (?P<level>[MONG]) \| (?P<rest>.*) \|$")
_CELL = re.compile(r"(?<!\\) \| ")
_NAMED = re.compile(r"(?:^|_)(s[0-4]|m)_(\d+)(?=_|$)")
_RANGE = re.compile(r"(?:^|_)(s[0-4]|m)_(\d+)_to_\1_(\d+)(?=_|$)")


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement: an id such as `S0-28`, a level (M, O, N, G) and two texts."""

    id: str
    level: str
    statement: str
    check: str

    @property
    def section(self) -> str:
        """The part before the number: S0 to S4, or M."""
        return self.id.partition("-")[0]


def parse_rows(markdown: str) -> list[Row]:
    """Read the rows of the requirements document, in its order."""
    return [row for line in markdown.splitlines() if (row := _parse_row(line)) is not None]


def _parse_row(line: str) -> Row | None:
    match = _ROW.match(line)
    if match is None:
        return None
    statement, check = _CELL.split(match["rest"], maxsplit=1)
    return Row(match["id"], match["level"], statement, check)


def rows_named(test_name: str) -> list[str]:
    """Give the row ids in a test's name: `s0_28`, `s0_1_and_s0_2`, `s2_22_to_s2_25`."""
    ids = [f"{section.upper()}-{number}" for section, number in _NAMED.findall(test_name)]
    for section, first, last in _RANGE.findall(test_name):
        ids += [f"{section.upper()}-{number}" for number in range(int(first) + 1, int(last))]
    return list(dict.fromkeys(ids))


def names_in(path: Path) -> Iterator[str]:
    """Yield the names of the test functions and methods of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test_"):
                    yield name


def proofs_by_row(paths: Iterable[Path], root: Path) -> dict[str, list[str]]:
    """Map row ids to `file::test` of each test that names them."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        for name in names_in(path):
            for row_id in rows_named(name):
                found.setdefault(row_id, []).append(f"{path.relative_to(root)}::{name}")
    return found


def listing(rows: Sequence[Row], tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a line a row, then its tests, each on a line of its own."""
    for row in rows:
        yield f"{row.id:<6} {row.level}  {row.statement}"
        yield from (f"         {test}" for test in tests.get(row.id, ()))


def summary(rows: Sequence[Row], tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield how many rows of each section have no test, then the total."""
    for section in dict.fromkeys(row.section for row in rows):
        of_section = [row for row in rows if row.section == section]
        without = sum(row.id not in tests for row in of_section)
        yield f"{section}: {len(of_section)} rows, {without} without a test"
    without = sum(row.id not in tests for row in rows)
    yield f"all: {len(rows)} rows, {without} without a test"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the listing; `--missing` prints only the rows without a test."""
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="only the rows without a test")
    options = parser.parse_args(arguments)
    rows = parse_rows(DOCUMENT.read_text(encoding="utf-8"))
    tests = proofs_by_row(HERE.rglob("test_*.py"), HERE.parent)
    shown = [row for row in rows if row.id not in tests] if options.missing else rows
    sys.stdout.writelines(
        f"{line}\n" for line in [*listing(shown, tests), "", *summary(rows, tests)]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
