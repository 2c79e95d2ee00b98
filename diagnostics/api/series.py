"""GET /api/v1/series."""

from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from diagnostics import clock
from diagnostics.access.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.api.examples import SERIES_PAGE
from diagnostics.api.exporting import ListView, Page
from diagnostics.api.filters import FORMAT_PARAMETER, SERIES_PARAMETERS, select
from diagnostics.api.openapi import EXPORTS
from diagnostics.core.api_keys import Scope
from diagnostics.core.filter_fields import SERIES_FIELDS
from diagnostics.core.selection import Selection
from diagnostics.core.series import SEVERITY, SeriesState
from diagnostics.core.standing import Curve, Subject, axis_of
from diagnostics.queries.events import SeriesRow, series_rows
from diagnostics.queries.trends import SeriesKey, trends
from diagnostics.serializers import SeriesItemSerializer, SeriesPageSerializer
from diagnostics.verdicts.judging import Verdict, since_of
from diagnostics.verdicts.recent import recent_verdict_of

COLUMNS = list(SeriesItemSerializer._declared_fields)


class SeriesView(ListView):
    """How every (environment, node, provider, model) stands."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="series_list",
        parameters=[*SERIES_PARAMETERS, FORMAT_PARAMETER],
        examples=[SERIES_PAGE],
        responses={200: SeriesPageSerializer, **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List series of the window (the last 24 hours unless told), worst first."""
        asked = request.query_params.dict()
        selection = select(asked, [*SERIES_PARAMETERS, FORMAT_PARAMETER])
        refuse_uncounted(selection)
        items = list_series(project_of(request).pk, selection, clock.now())

        def read_page(limit: int, cursor: str | None) -> Page:
            return items, None

        return self.answer_list(request, COLUMNS, read_page, None, None)


def refuse_uncounted(selection: Selection) -> None:
    """Raise ValidationError (400) for what series are not counted by."""
    filters = selection.rollup_filters
    terms = selection.text.terms
    if selection.text.words or any(t.field not in SERIES_FIELDS for t in terms):
        message = f"series are told apart by {', '.join(SERIES_FIELDS)} only"
        raise ValidationError({"q": message})
    if uncounted := set(selection.filters) - set(filters):
        raise ValidationError(dict.fromkeys(uncounted, "series are not counted by it"))


def list_series(project_id: int, selection: Selection, now: datetime) -> list[dict[str, Any]]:
    """Give the series of a selection in the wire format, worst first."""
    since, until = selection.window(now)
    versions = selection.version_terms
    terms = selection.rollup_terms
    axis = axis_of(since, until)
    curves = trends(project_id, axis.since, axis.until, axis.count, versions)
    rows = [
        (
            row,
            _subject(row, Curve(axis.since, axis.width, curves.get(_key_of(row), []))),
        )
        for row in series_rows(project_id, since, until, terms=terms)
    ]
    # The verdict says since when: it need not be asked while nothing degrades.
    is_calm = all(s.state is not SeriesState.DEGRADING for _, s in rows)
    verdict = None if is_calm else recent_verdict_of(project_id, selection, now)
    items = [describe_series(row, subject, verdict) for row, subject in rows]
    items.sort(key=lambda item: SEVERITY[item["state"]])
    return items


def describe_series(row: SeriesRow, subject: Subject, verdict: Verdict | None) -> dict[str, Any]:
    """Give a series in the wire format; `since` is when its degradation began."""
    return {
        "provider": row.provider,
        "model": row.model,
        "node": row.node,
        "environment": row.environment,
        "state": subject.state.value,
        "runs": row.counts.runs,
        "degraded": row.counts.degraded,
        "degraded_rate": row.rates.degraded_rate,
        "degraded_low": row.rates.degraded_low,
        "degraded_high": row.rates.degraded_high,
        "baseline": row.rates.baseline,
        "first_pass_rate": row.rates.first_pass_rate,
        "repair_success_rate": row.rates.repair_success_rate,
        "retry_tokens": row.counts.retry_tokens,
        "retry_seconds": row.counts.retry_milliseconds / 1000,
        "since": since_of(_key_of(row), subject, verdict) if verdict else None,
    }


def _subject(row: SeriesRow, curve: Curve) -> Subject:
    return Subject(f"{row.provider}/{row.model}", row.node, row.counts, curve=curve)


def _key_of(row: SeriesRow) -> SeriesKey:
    return SeriesKey(row.environment, row.node, row.provider, row.model)
