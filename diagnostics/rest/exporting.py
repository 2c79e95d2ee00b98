"""The rows of a list as CSV or JSON lines, streamed page by page."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.authentication import KeyedView
from diagnostics.rest.filters import DEFAULT_LIMIT, MAX_LIMIT, read_optional_limit

# A spreadsheet takes a cell for UTF-8 by this mark, and for a formula by its first sign, blanks
# before it or not. A cell begins after `;` and tabs too: the separator depends on the country.
BYTE_ORDER_MARK = "\ufeff"
_CELL_START = re.compile(r"(^|[;\t\r\n])([\s\ufeff\u200b]*)([=+\-@\uff1d\uff0b\uff0d\uff20]?)")
_BREAKS = frozenset("\t\r\n")
Row = Mapping[str, Any]


def write_csv(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Return the lines of a CSV file, the names of the columns first."""
    yield _line(columns)
    for row in rows:
        yield _line([cell_of(row.get(column)) for column in columns])


def write_csv_file(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Return the same as a file that people open."""
    return chain([BYTE_ORDER_MARK], write_csv(columns, rows))


def write_json_lines(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, default=_plain) + "\n"


def cell_of(value: object) -> str:
    """Return the text of a cell; a text that could be a formula is quoted."""
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
    return _CELL_START.sub(_quote, text)


def _quote(start: re.Match[str]) -> str:
    before, blanks, sign = start.groups()
    if not sign:
        return start[0]
    first = "" if before else "'"
    return f"{before}{first}{blanks}'{sign}" if before or _BREAKS & set(blanks) else f"'{start[0]}"


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


Page = tuple[Sequence[Row], str | None]
ReadPage = Callable[[int, str | None], Page]
STREAM_PAGE = 500


class _Streamed(BaseRenderer):
    """Names a media type; the view streams the rows."""

    render_style = "text"
    charset = "utf-8"

    def render(
        self,
        data: Any,  # noqa: ANN401 - whatever a view gives
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return anything but a list, such as a refusal, as JSON."""
        body: bytes = JSONRenderer().render(data)
        return body


class CsvRenderer(_Streamed):
    media_type = "text/csv"
    format = "csv"


class JsonLinesRenderer(_Streamed):
    media_type = "application/x-ndjson"
    format = "ndjson"


class ListView(KeyedView):
    """A list as a page of JSON, or as a whole in CSV or JSON lines."""

    renderer_classes = (JSONRenderer, CsvRenderer, JsonLinesRenderer)
    most_streamed = 100_000
    """The largest `limit` of a stream."""

    def handle_exception(self, exc: Exception) -> Response:
        """Respond to every refusal in JSON, whatever was requested."""
        self.request.accepted_renderer = JSONRenderer()
        self.request.accepted_media_type = JSONRenderer.media_type
        return super().handle_exception(exc)

    def answer_list(
        self,
        request: Request,
        columns: Sequence[str],
        read_page: ReadPage,
        beside: Mapping[str, Any] | None = None,
    ) -> HttpResponseBase:
        """Return a page from the cursor that is asked for; a stream of all rows, or of `limit`.

        `read_page(limit, cursor)` returns rows and the next cursor.
        """
        params, kind = request.query_params.dict(), request.accepted_renderer.format
        most = MAX_LIMIT if kind == "json" else self.most_streamed
        limit, cursor = read_optional_limit(params, most), params.get("cursor")
        if kind == "json":
            rows, after = read_page(limit or DEFAULT_LIMIT, cursor)
            return Response({"items": rows, "next": after, **(beside or {})})
        rows_left = _all_rows(read_page, limit, cursor)
        # The first page is read before the response starts, so that its errors get a status.
        first = next(rows_left, None)
        all_rows: Iterable[Row] = rows_left if first is None else chain([first], rows_left)
        lines = write_csv(columns, all_rows) if kind == "csv" else write_json_lines(all_rows)
        return StreamingHttpResponse(
            lines,
            content_type=f"{request.accepted_renderer.media_type}; charset=utf-8",
            headers={"Cache-Control": "private, no-store"},
        )


def _all_rows(read_page: ReadPage, limit: int | None, cursor: str | None) -> Iterator[Row]:
    remaining = sys.maxsize if limit is None else limit
    while True:
        rows, cursor = read_page(min(remaining, STREAM_PAGE), cursor)
        yield from rows
        remaining -= len(rows)
        if cursor is None or remaining == 0:
            return
