"""POST /api/v1/outcomes."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.api.bodies import Batch
from diagnostics.api.examples import OUTCOMES, OUTCOMES_RESULT
from diagnostics.api.ingesting import (
    BatchView,
    Result,
    refused_result,
    stored_result,
)
from diagnostics.api.openapi import REFUSALS, describe_model
from diagnostics.core.batches import Refused
from diagnostics.core.cleaning import JSON, clean_json
from diagnostics.core.event_faults import describe_errors
from diagnostics.core.outcomes import Outcome
from diagnostics.ingestion.outcomes import record_outcomes
from diagnostics.models import ApiKey
from diagnostics.serializers import BatchResultSerializer


class OutcomesView(BatchView):
    """Runs that were counted where they ran."""

    @extend_schema(
        operation_id="outcomes_create",
        request={
            "application/json": {"type": "array", "items": describe_model(Outcome)},
            "application/x-ndjson": {"type": "string"},
        },
        examples=[OUTCOMES, OUTCOMES_RESULT],
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultSerializer, 207: BatchResultSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Add pre-counted runs: each (source, minute, sequence) once."""
        return self.take(request, store_outcomes)


def store_outcomes(key: ApiKey, batch: Batch, keep_share: float) -> list[Result]:
    """Check and store the items of a batch; one result per item, in order, committed."""
    checked = [_read(item) for item in batch.items]
    good = [item for item in checked if isinstance(item, Outcome)]
    said = iter(record_outcomes(key.project_id, good))
    return [
        refused_result(index, item)
        if isinstance(item, Refused)
        else stored_result(index, None, next(said))
        for index, item in enumerate(checked)
    ]


def _read(item: JSON) -> Outcome | Refused:
    cleaned, fault = clean_json(item)
    if fault is not None:
        told = {"path": fault.path, "code": fault.code, "message": fault.message}
        return Refused(None, [told])
    try:
        return Outcome.model_validate(cleaned)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        return Refused(None, describe_errors(list(found)))
