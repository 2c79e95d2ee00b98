"""GET /api/v1/series."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics import clock
from diagnostics.api.filters import (
    SERIES_PARAMETERS,
    read_series_filters,
    read_window,
)
from diagnostics.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.core.api_keys import Scope
from diagnostics.core.onset import Bucket, onset
from diagnostics.core.series import SEVERITY, Rates, SeriesState, judge
from diagnostics.reading import SeriesRow, series_rows
from diagnostics.serializers import ProblemSerializer, SeriesPageSerializer
from diagnostics.trends import SeriesKey, trends

DEFAULT_SPAN = timedelta(hours=24)
ONSET_BUCKETS = 96


class SeriesView(APIView):
    """How every (environment, node, provider, model) stands."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="series_list",
        parameters=SERIES_PARAMETERS,
        responses={200: SeriesPageSerializer, 400: ProblemSerializer},
    )
    def get(self, request: Request) -> Response:
        """List series of the window (the last 24 hours unless told), worst first."""
        asked = request.query_params.dict()
        window = read_window(asked)
        until = window.until or clock.now()
        since = window.since or until - DEFAULT_SPAN
        project_id = project_of(request).pk
        rows = series_rows(project_id, since, until, read_series_filters(asked))
        curves = trends(project_id, since, until, ONSET_BUCKETS)
        width = (until - since) / ONSET_BUCKETS
        items = [
            describe_series(row, curves.get(_key_of(row), []), since, width)
            for row in rows
        ]
        items.sort(key=lambda item: SEVERITY[item["state"]])
        return Response({"items": items, "next": None})


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
