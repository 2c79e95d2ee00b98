"""GET /api/v1/verdict: what the first line of the console says, for programs."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics import clock
from diagnostics.api.filters import SERIES_PARAMETERS, select
from diagnostics.api.series import refuse_uncounted
from diagnostics.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.core.api_keys import Scope
from diagnostics.serializers import CauseVerdictSerializer
from diagnostics.verdicts import Verdict, verdict_of


class VerdictView(APIView):
    """Which calls got worse, since when, whether it is us or them, and what to change."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
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


def describe(verdict: Verdict) -> dict[str, Any]:
    """Give a verdict in the wire format."""
    finding, rate, who = verdict.finding, verdict.rate, verdict.who
    low, high = rate.interval if rate else (None, None)
    return {
        "state": verdict.state,
        "since": verdict.since,
        "since_low": verdict.since_low,
        "since_high": verdict.since_high,
        **(who._asdict() if who else dict.fromkeys(_WHO)),
        "cause": finding.cause,
        "cause_value": finding.value or None,
        "top_kind": finding.top_kind or None,
        "rate": rate.share if rate else None,
        "low": low,
        "high": high,
        "baseline": rate.baseline if rate else None,
        "runs": rate.total if rate else 0,
        "counted": f"{rate.noun}s" if rate else None,
        "excess": [
            {
                "dimension": share.dimension,
                "value": share.value,
                "share": share.share,
                "traffic_share": share.traffic_share,
                "lift": share.lift,
            }
            for share in finding.shares
        ],
        "advice": [
            {"text": one.text, "evidence": one.evidence} for one in verdict.advice
        ],
        "sentence": verdict.sentence,
    }


_WHO = ("environment", "node", "provider", "model")
