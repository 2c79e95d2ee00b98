"""Reads the cases of damaged answers: text files that say what came in and what must come out.

`### name` begins a case, `@@@ reason` gives a finish reason, the lines that follow are the text;
`=== value` ends it with the JSON that must be read, `!!! type line:column` with the refusal.
`<U+00A0>` stands for a character that cannot be seen.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"
_INVISIBLE = re.compile(r"<U\+([0-9A-F]{4})>")


@dataclass(frozen=True)
class Case:
    """One damaged answer with the value that must be read, or the refusal."""

    name: str
    text: str
    finish_reason: str | None = None
    value: Any = None
    error_type: str | None = None
    line: int = 0
    column: int = 0

    @property
    def is_recoverable(self) -> bool:
        """Whether exactly one reading exists."""
        return self.error_type is None


def read_cases(folder: Path = FOLDER) -> list[Case]:
    """Read every case of every file, in the order of their names."""
    files = sorted(folder.glob("*.txt"))
    return [case for file in files for case in _read_file(file)]


def _read_file(file: Path) -> Iterator[Case]:
    name, reason = "", None
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if line.startswith("### "):
            name, reason, lines = f"{file.stem}: {line[4:]}", None, []
        elif line.startswith("@@@ "):
            reason = line[4:]
        elif line.startswith(("=== ", "!!! ")):
            yield _finish(name, _show("\n".join(lines)), reason, line)
            name = ""
        elif name:
            lines.append(line)


def _finish(name: str, text: str, reason: str | None, verdict: str) -> Case:
    if verdict.startswith("==="):
        return Case(name, text, reason, value=json.loads(_show(verdict[4:])))
    error_type, place = verdict[4:].split()
    line, column = place.split(":")
    return Case(name, text, reason, None, error_type, int(line), int(column))


def _show(text: str) -> str:
    return _INVISIBLE.sub(lambda match: chr(int(match[1], 16)), text)
