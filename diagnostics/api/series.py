"""GET /api/v1/series."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from diagnostics import clock
from diagnostics.api.examples import SERIES_PAGE
from diagnostics.api.exporting import ListView, Page
from diagnostics.api.filters import FORMAT_PARAMETER, SERIES_PARAMETERS, select
from diagnostics.api.openapi import EXPORTS
from diagnostics.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.core.api_keys import Scope
from diagnostics.core.filter_fields import SERIES_FIELDS
from diagnostics.core.onset import Bucket, onset
from diagnostics.core.selection import Selection
from diagnostics.core.series import SEVERITY, Rates, SeriesState, judge
from diagnostics.reading import SeriesRow, series_rows
from diagnostics.serializers import SeriesItemSerializer, SeriesPageSerializer
from diagnostics.trends import SeriesKey, trends

COLUMNS = list(SeriesItemSerializer._declared_fields)
ONSET_BUCKETS = 96


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


def list_series(
    project_id: int, selection: Selection, now: datetime
) -> list[dict[str, Any]]:
    """Give the series of a selection in the wire format, worst first."""
    since, until = selection.window(now)
    terms = (*selection.series_terms, *selection.version_terms)
    rows = series_rows(project_id, since, until, terms=terms)
    curves = trends(project_id, since, until, ONSET_BUCKETS, selection.version_terms)
    width = (until - since) / ONSET_BUCKETS
    items = [
        describe_series(row, curves.get(_key_of(row), []), since, width) for row in rows
    ]
    items.sort(key=lambda item: SEVERITY[item["state"]])
    return items


def describe_series(
    row: SeriesRow, curve: list[Bucket], since: datetime, width: timedelta
) -> dict[str, Any]:
    """Give a series in the wire format; `since` is when its degradation began."""
    place = onset(curve, row.rates.baseline)
    state = state_now(row.rates, curve[place:] if place is not None else [])
    is_bad = state is SeriesState.DEGRADING
    begun = since + place * width if is_bad and place is not None else None
    return {
        "provider": row.provider,
        "model": row.model,
        "node": row.node,
        "environment": row.environment,
        "state": state.value,
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
        "since": begun,
    }


def state_now(rates: Rates, since_onset: Sequence[Bucket]) -> SeriesState:
    """Judge a series by its runs since the onset when that is worse.

    A window may begin long before the trouble: over 24 h an hour of failures is small.
    """
    runs = sum(bucket.runs for bucket in since_onset)
    degraded = sum(bucket.degraded for bucket in since_onset)
    if judge(degraded, runs, rates.baseline) is SeriesState.DEGRADING:
        return SeriesState.DEGRADING
    return rates.state


def _key_of(row: SeriesRow) -> SeriesKey:
    return SeriesKey(row.environment, row.node, row.provider, row.model)
