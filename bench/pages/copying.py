"""Copies of a peer's rows in its own SQLite: the same once more, at other times."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from uuid import UUID

Asked = Mapping[str, str | int]
SHIFTED = "strftime('%Y-%m-%d %H:%M:%f', {0}, :shift) || '000'"
"""A moment as both have it, earlier by so much."""
ANEW = "substr({0}, 1, length({0}) - 8) || printf('%08x', :copy)"
"""An identifier that nobody has, and that can be told from the one it is a copy of."""


def copy_bugsink(place: Path, events: int, over: timedelta) -> tuple[str, int]:
    """Copy events with their tags; give an issue and how many events there are."""
    moments = ("timestamp", "digested_at", "ingested_at")
    event = {name: SHIFTED.format(name) for name in moments} | {
        "id": ANEW.format("id"),
        "event_id": ANEW.format("event_id"),
        "digest_order": "digest_order + :copy * 1000",
        "project_digest_order": "project_digest_order + :copy * 1000",
    }
    tag = {"event_id": ANEW.format("event_id"), "digest_order": "digest_order + :copy * 1000"}
    with closing(sqlite3.connect(place, timeout=60)) as server:
        sent = _count(server, "events_event")
        for copy in range(1, _copies(events, sent)):
            asked: Asked = {"copy": copy, "shift": _shift(copy, events, sent, over)}
            _copy(server, "events_event", event, asked, ())
            _copy(server, "tags_eventtag", tag, asked, ("id",))
        server.execute(
            "UPDATE issues_issue SET digested_event_count = told.seen,"
            " stored_event_count = told.seen, digest_order = told.latest FROM ("
            "  SELECT issue_id, count(*) AS seen, max(digest_order) AS latest"
            "  FROM events_event GROUP BY issue_id"
            " ) AS told WHERE told.issue_id = issues_issue.id"
        )
        server.commit()
        server.execute("ANALYZE")
        (issue,) = server.execute("SELECT id FROM issues_issue LIMIT 1").fetchone()
        return str(UUID(issue)), _count(server, "events_event")


def copy_phoenix(place: Path, events: int, over: timedelta) -> tuple[str, int]:
    """Copy spans with their traces; give a trace's id and how many spans there are."""
    moments = {name: SHIFTED.format(name) for name in ("start_time", "end_time")}
    trace = {**moments, "trace_id": ANEW.format("trace_id")}
    span = {
        **moments,
        "span_id": ANEW.format("span_id"),
        "trace_rowid": f"(SELECT id FROM traces WHERE trace_id = ({_TRACE}))",  # noqa: S608 - our own words
    }
    with closing(sqlite3.connect(place, timeout=60)) as server:
        sent = _count(server, "spans")
        for copy in range(1, _copies(events, sent)):
            asked: Asked = {"copy": copy, "shift": _shift(copy, events, sent, over)}
            _copy(server, "traces", trace, asked, ("id",))
            _copy(server, "spans", span, asked, ("id",))
        server.commit()
        server.execute("ANALYZE")
        (named,) = server.execute("SELECT trace_id FROM traces LIMIT 1").fetchone()
        return str(named), _count(server, "spans")


_TRACE = (
    f"SELECT {ANEW.format('sent.trace_id')} FROM traces AS sent"  # noqa: S608 - our own words
    " WHERE sent.id = spans.trace_rowid"
)


def _copy(
    server: sqlite3.Connection,
    table: str,
    changed: Mapping[str, str],
    asked: Asked,
    left_out: tuple[str, ...],
) -> None:
    """Copy the rows that were sent; those are the first ones."""
    columns = [row[1] for row in server.execute(f"PRAGMA table_info({table})")]
    names = [name for name in columns if name not in left_out]
    told = [changed.get(name, f'"{name}"') for name in names]
    quoted = ", ".join(f'"{name}"' for name in names)
    if asked["copy"] == 1:
        server.execute(
            f"CREATE TEMPORARY TABLE sent_{table} AS SELECT rowid AS place FROM {table}"  # noqa: S608 - our own words
        )
    server.execute(
        f"INSERT INTO {table} ({quoted}) SELECT {', '.join(told)} FROM {table}"  # noqa: S608 - our own words
        f" WHERE rowid IN (SELECT place FROM sent_{table})",
        asked,
    )


def _copies(events: int, sent: int) -> int:
    return max(-(-events // max(sent, 1)), 1)


def _shift(copy: int, events: int, sent: int, over: timedelta) -> str:
    return f"-{over.total_seconds() * copy / _copies(events, sent):.0f} seconds"


def _count(server: sqlite3.Connection, table: str) -> int:
    (found,) = server.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own words
    return int(found)
