"""GET /api/v1/verdict and GET /api/v1/series."""

from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import (
    KeyedView,
    project_of,
)
from diagnostics.analysis.series import SEVERITY, RatedSeries, RunCurve, SeriesState, axis_of
from diagnostics.queries.events import SeriesRow, series_rows
from diagnostics.queries.trends import trends
from diagnostics.rest.examples import SERIES_PAGE
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import FORMAT_PARAMETER, SERIES_PARAMETERS, select
from diagnostics.rest.openapi import EXPORTS, Numbers, Shares, Texts
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.suspects import Cause
from diagnostics.verdict.verdicts import Verdict, describe, recent_verdict_of, since_of, verdict_of


class SeriesItemSerializer(serializers.Serializer[Any]):
    """A series in a window; shares are between 0 and 1."""

    provider = Texts(allow_null=True)
    model = Texts(allow_null=True)
    node = Texts()
    environment = Texts(allow_null=True)
    state = serializers.ChoiceField([state.value for state in SeriesState])
    runs = Numbers()
    degraded = Numbers()
    degraded_rate = Shares(allow_null=True)
    degraded_low = Shares(allow_null=True)
    degraded_high = Shares(allow_null=True)
    baseline = Shares(allow_null=True)
    first_pass_rate = Shares(allow_null=True)
    repair_success_rate = Shares(allow_null=True)
    retry_tokens = Numbers()
    retry_seconds = Shares()
    since = serializers.DateTimeField(allow_null=True)


class SeriesPageSerializer(serializers.Serializer[Any]):
    """All series of a window, worst first."""

    items = SeriesItemSerializer(many=True)
    next = Texts(allow_null=True)


class ExcessShareSerializer(serializers.Serializer[Any]):
    """How much of the excess one value of a dimension has, beside its share of calls."""

    dimension = Texts()
    value = Texts()
    share = Shares(help_text="of the excess; may be below 0 or above 1")
    traffic_share = Shares()
    lift = Shares(allow_null=True, help_text="share / traffic_share")


class AdviceSerializer(serializers.Serializer[Any]):
    """One thing to change, and why."""

    text = Texts()
    evidence = Texts()


class CauseVerdictSerializer(serializers.Serializer[Any]):
    """Which calls got worse, since when, and what it comes from."""

    state = serializers.ChoiceField(["ok", "degrading", "not_enough_data"])
    since = serializers.DateTimeField(allow_null=True)
    since_low = serializers.DateTimeField(allow_null=True)
    since_high = serializers.DateTimeField(allow_null=True)
    environment = Texts(allow_null=True)
    node = Texts(allow_null=True)
    provider = Texts(allow_null=True)
    model = Texts(allow_null=True)
    cause = serializers.ChoiceField([cause.value for cause in Cause], allow_null=True)
    cause_value = Texts(allow_null=True)
    top_kind = Texts(allow_null=True)
    rate = Shares(allow_null=True)
    low = Shares(allow_null=True)
    high = Shares(allow_null=True)
    baseline = Shares(allow_null=True)
    runs = Numbers(help_text="how many `rate` is of")
    counted = serializers.ChoiceField(
        ["runs", "calls"], allow_null=True, help_text="what `rate` is of"
    )
    excess = ExcessShareSerializer(many=True)
    advice = AdviceSerializer(many=True)
    sentence = Texts()


COLUMNS = list(SeriesItemSerializer._declared_fields)


class SeriesView(ListView):
    """How every (environment, node, provider, model) stands."""

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
    """Return the series of a selection in the wire format, worst first."""
    since, until = selection.window(now)
    versions = selection.version_terms
    terms = selection.rollup_terms
    axis = axis_of(since, until)
    curves = trends(project_id, axis.since, axis.until, axis.count, versions)
    rows = [
        (
            row,
            _subject(row, RunCurve(axis.since, axis.width, curves.get(row.key, []))),
        )
        for row in series_rows(project_id, since, until, terms=terms)
    ]
    # The verdict says since when: it need not be asked while nothing degrades.
    is_calm = all(s.state is not SeriesState.DEGRADING for _, s in rows)
    verdict = None if is_calm else recent_verdict_of(project_id, selection, now)
    items = [describe_series(row, subject, verdict) for row, subject in rows]
    items.sort(key=lambda item: SEVERITY[item["state"]])
    return items


def describe_series(
    row: SeriesRow, subject: RatedSeries, verdict: Verdict | None
) -> dict[str, Any]:
    """Return a series in the wire format; `since` is when its degradation began."""
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
        "since": since_of(row.key, subject, verdict) if verdict else None,
    }


def _subject(row: SeriesRow, curve: RunCurve) -> RatedSeries:
    return RatedSeries(f"{row.provider}/{row.model}", row.node, row.counts, curve=curve)


class VerdictView(KeyedView):
    """Which calls got worse, since when, whether it is us or them, and what to change."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="verdict",
        parameters=SERIES_PARAMETERS,
        responses={200: CauseVerdictSerializer},
    )
    def get(self, request: Request) -> Response:
        """Judge the calls of the window (the last 24 hours unless told)."""
        selection = select(request.query_params.dict(), SERIES_PARAMETERS)
        refuse_uncounted(selection)
        verdict = verdict_of(project_of(request).pk, selection, clock.now())
        return Response(describe(verdict))
