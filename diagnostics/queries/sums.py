"""Sums of rollups by any of their dimensions: the only reader of counts.

Exact: rollup rows plus the deltas that are not aggregated yet, in one statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import add
from typing import Any

from diagnostics.selection.conditions import TABLES, term_params, write_narrowing, write_terms
from diagnostics.selection.query_language import Term
from diagnostics.store.rollups import MEASURES, SERIES, VERSION
from diagnostics.store.sql import fetch, fill
from diagnostics.store.windows import Grain, Segment, TimeWindow, coarsest_of

SLOT = "slot"
DIMENSIONS = (*SERIES, *VERSION)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Slots:
    """Equal slots of time; rows before the first count in it, rows after the last in that."""

    since: datetime
    width: timedelta
    count: int


@dataclass(frozen=True, slots=True)
class Question:
    """A query of sums: dimensions give the rows, measures the numbers.

    Terms apply as in `diagnostics.selection.selection.keeps_all`: any of a field's positive
    ones, none of its negative ones; a value of None matches null. With slots, the number of the
    slot (from 0) is the last dimension, and the window is read in no coarser grain than fits
    into them. Dimensions or terms of a version (prompt_version, schema, schema_version, source,
    release, served) are known by the hour: the window must be aligned to hours. `series` are
    the ids of those that are read; None reads all.
    """

    window: TimeWindow
    dimensions: Sequence[str]
    measures: Sequence[str]
    terms: Sequence[Term] = ()
    slots: Slots | None = None
    series: Sequence[int] | None = None

    def __post_init__(self) -> None:
        """Refuse unknown columns, since names become part of the statement."""
        for name in self.measures:
            if name not in MEASURES:
                raise ValueError(f"{name} is not counted by rollups")
        for name in self.columns:
            if name not in DIMENSIONS:
                raise ValueError(f"rollups do not know {name}")
        if self.is_by_version and self.window.finest is Grain.MINUTE:
            raise ValueError("versions are known by the hour")

    @property
    def columns(self) -> Sequence[str]:
        return (*self.dimensions, *(term.field for term in self.terms))

    @property
    def is_by_version(self) -> bool:
        return any(name in VERSION for name in self.columns)


def sum_rollups(project_id: int, question: Question) -> list[Row]:
    """Return rows of dimensions, then measures; a measure without counts is 0."""
    params: dict[str, str | int | float | datetime | list[int] | None] = {
        "project": project_id,
        "since": question.window.since,
        "until": question.window.until,
        **term_params(question.terms),
    }
    if question.series is not None:
        params["series"] = list(question.series)
    if question.slots:
        params["origin"] = question.slots.since
        params["seconds"] = question.slots.width.total_seconds()
    for index, segment in enumerate(_segments(question)):
        params[f"since_{index}"], params[f"until_{index}"] = segment.since, segment.until
    rows = fetch(_write(question), params)
    return _clamp(rows, question, question.slots) if question.slots else rows


def _clamp(rows: Sequence[Row], question: Question, slots: Slots) -> list[Row]:
    """Add rows before the first slot to it, and rows after the last slot to that."""
    slot_index = len(question.dimensions)
    if all(0 <= row[slot_index] < slots.count for row in rows):
        return list(rows)
    totals: dict[Row, Row] = {}
    for row in rows:
        key = (*row[:slot_index], min(max(row[slot_index], 0), slots.count - 1))
        counts = row[slot_index + 1 :]
        known = totals.get(key)
        totals[key] = counts if known is None else tuple(map(add, known, counts))
    return [(*key, *counts) for key, counts in totals.items()]


def _segments(question: Question) -> Sequence[Segment]:
    window, slots = question.window, question.slots
    if slots is None:
        return window.segments
    return window.segments_to(coarsest_of(slots.since, slots.width))


def _write(question: Question) -> str:
    """Return the statement; every name is from the fixed lists above."""
    slots = [SLOT] if question.slots else []
    tables = _tables(question)
    keys = [*(f"{table}_id" for table in tables), *slots]
    dimensions = [*question.dimensions, *slots]
    sums = [f"coalesce(sum({name}), 0)::bigint AS {name}" for name in question.measures]
    is_narrow = question.series is not None
    return fill(
        "sums",
        keys=", ".join(keys),
        sums=", ".join(sums),
        measured=", ".join(f"kept.{name}" for name in question.measures),
        dimensions=", ".join(dimensions),
        named=", ".join(_TABLE_OF[name] + f".{name}" for name in dimensions),
        answered=", ".join([*question.dimensions, *([_NUMBER] if slots else [])]),
        joined="\n".join(_JOINED.format(table) for table in tables),
        filters=write_terms(question.terms) + (_OF_SERIES if is_narrow else ""),
        segments="\nUNION ALL\n".join(
            _segment(question, place, segment) for place, segment in enumerate(_segments(question))
        ),
        slot=_slot("minute") if question.slots else "0",
        minutes=_minutes(question),
    )


# Deltas know the texts of their series only.
_OF_SERIES = """
        AND md5(json_build_array(environment, node, provider, model)::text)::uuid
            IN (SELECT key FROM diagnostics_series WHERE id = ANY(%(series)s))"""
# A slot begins at whole widths from the origin: rounding removes the float error.
_NUMBER = "(extract(epoch FROM slot - %(origin)s) / %(seconds)s)::integer"
_TABLE_OF = {SLOT: "kept", **{name: table for table in TABLES for name in TABLES[table]}}
_JOINED = "JOIN diagnostics_{0} AS {0} ON {0}.id = kept.{0}_id"


def _tables(question: Question) -> Sequence[str]:
    return [
        table
        for table, fields in TABLES.items()
        if any(name in fields for name in question.dimensions)
    ]


def _slot(column: str) -> str:
    # Integer arithmetic: dividing an epoch uses decimals and is ten times as slow.
    return f"date_bin(make_interval(secs => %(seconds)s), {column}, %(origin)s)"


def _segment(question: Question, place: int, segment: Segment) -> str:
    table = f"diagnostics_rollup_{segment.grain}"
    table += "_by_version" if question.is_by_version else ""
    names = [f"{table_name}_id" for table_name in _tables(question)]
    names += [f"{_slot('bucket')} AS slot"] if question.slots else []
    narrowing = write_narrowing(question.terms)
    narrowing += " AND series_id = ANY(%(series)s)" if question.series is not None else ""
    return (
        f"SELECT {', '.join([*names, *question.measures])} FROM {table}"  # noqa: S608 - fixed names
        f" WHERE project_id = %(project)s AND bucket >= %(since_{place})s"
        f" AND bucket < %(until_{place})s{narrowing}"
    )


def _minutes(question: Question) -> str:
    """Return the condition for the ranges read by minute, where marked events do not count."""
    conditions = [
        f"(minute >= %(since_{index})s AND minute < %(until_{index})s)"
        for index, segment in enumerate(_segments(question))
        if segment.grain is Grain.MINUTE
    ]
    return " OR ".join(conditions) or "false"
