"""Rows as CSV and as JSON lines, safe to be opened in a spreadsheet (S13 to S16)."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

# A spreadsheet takes a cell that begins so for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
Row = Mapping[str, Any]


def write_csv(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Give the lines of a CSV file, the names of the columns first."""
    yield _line(columns)
    for row in rows:
        yield _line([cell_of(row.get(column)) for column in columns])


def write_json_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Give one JSON object a line."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, default=_plain) + "\n"


def cell_of(value: object) -> str:
    """Give the text of a cell; a text that could be a formula is quoted."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False, default=_plain) if value else ""
    else:
        text = _plain(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)
