"""The models page: which model fails in which way, beyond what is usual."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.urls import reverse

from diagnostics import clock
from diagnostics.alerting.incident_records import incidents_in
from diagnostics.figures import read_number
from diagnostics.prices.models import prices_of
from diagnostics.prices.prices import retry_spend, total_spend
from diagnostics.prices.retry_budgets import RetrySpend
from diagnostics.queries.call_counts import kind_filter
from diagnostics.queries.matrix import Column, Matrix, MatrixRow, build_matrix, summarise_matrix
from diagnostics.queries.models import calls_by_model
from diagnostics.queries.series import covered_by, window_of
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.model_links import model_url
from diagnostics.web.pages import ConsoleRequest, member_page, respond
from diagnostics.web.sorting import ColumnSort

MOST_ROWS = 20
"""Models on one page."""
HEADS = {"model": "Model", "calls": "Calls", "degraded": "Runs degraded", "failed": "All kinds"}
NO_SPEND = RetrySpend(0)
Figure = Callable[[MatrixRow], Any]


@member_page
def models(request: ConsoleRequest) -> HttpResponse:
    selection = read_filters(request)
    now = clock.now()
    place = read_number(request.GET.get("page")) or 1
    sort = ColumnSort.read(request.GET)
    context = models_context(request.project.pk, selection, now, place, sort)
    columns: Sequence[Column] = context["matrix"].columns
    kinds = {kind_column(column): column.label for column in columns}
    labels = {**HEADS, **kinds, "tokens": "Retry tokens"}
    is_calm = context["line"].row is None
    if is_calm and (incidents := incidents_in(request.project.pk, selection, now, now)):
        # A model without a baseline week may have an open incident all the same.
        context = {**context, "incident": incidents[0], "headline": incidents[0].headline[0]}
        named = {row.slice.get("model") for row in incidents[0].slices.all()}
        context["is_absent"] = named.isdisjoint(row.model for row in context["matrix"].rows)
    context = {**context, "heads": sort.heads(labels, request.GET)}
    frame = filter_frame(
        request, selection, applies=ROLLUP_FIELDS, covers=covered_by(selection, now), kept=("sort",)
    )
    return respond(request, "models/matrix", {**frame, **context, "section": "models"}, "Models")


def models_context(
    project_id: int, selection: Selection, now: datetime, place: int, sort: ColumnSort
) -> Mapping[str, Any]:
    """Read one page of the matrix; the number of queries does not grow."""
    window, terms = window_of(selection, now), selection.rollup_terms
    counts, before = calls_by_model(project_id, window, terms)
    matrix = build_matrix(counts, before)
    spent = retry_spend(project_id, prices_of(project_id), window, terms)
    line = summarise_matrix(matrix, "" if selection.is_custom else selection.range_words)
    figure = _figures(matrix, spent).get(sort.column)
    rows = sort.order(matrix.rows, figure) if figure else matrix.rows
    page = Paginator(rows, MOST_ROWS).get_page(place)
    return {
        "matrix": matrix,
        "is_sorted": figure is not None,
        "line": line,
        "worst_url": _url(line.row, selection) if line.row else None,
        "lines": [_line(row, selection, spent) for row in page.object_list],
        "listed": page,
        "spend": total_spend(spent),
        "is_empty": not counts and not before and not selection.terms,
    }


def kind_column(column: Column) -> str:
    """Return what an address calls the column of a kind, or that of all others."""
    return f"kind:{column.kind}"


def _figures(matrix: Matrix, spent: Mapping[Any, RetrySpend]) -> Mapping[str, Figure]:
    by_kind: dict[str, Figure] = {
        kind_column(column): lambda row, at=at: row.cells[at][1].a.share  # type: ignore[misc]
        for at, column in enumerate(matrix.columns)
    }
    return {
        "model": lambda row: (row.model or "", row.provider or ""),
        "calls": lambda row: row.now.calls,
        "degraded": lambda row: row.degraded.share,
        "failed": lambda row: row.total.a.share,
        **by_kind,
        "tokens": lambda row: spent.get((row.provider, row.model), NO_SPEND).tokens,
    }


def failures_url(selection: Selection, **values: str | None) -> str:
    return f"{reverse('failures')}?{selection.query_for(**values)}"


def _line(
    row: MatrixRow, selection: Selection, spent: Mapping[Any, RetrySpend]
) -> Mapping[str, Any]:
    return {
        "row": row,
        "url": _url(row, selection),
        # A cell that stands out leads to its failures.
        "cells": [
            (
                column,
                excess,
                failures_url(
                    selection, provider=row.provider, model=row.model, kind=kind_filter(column.kind)
                )
                if column.kind and excess.level
                else None,
            )
            for column, excess in row.cells
        ],
        "spend": spent.get((row.provider, row.model), NO_SPEND),
    }


def _url(row: MatrixRow, selection: Selection) -> str:
    """Lead to the model's page, which is narrowed to it by its address."""
    query = selection.query(provider=None, model=None)
    return model_url(row.provider, row.model, query)
