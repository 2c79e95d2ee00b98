"""POST /api/v1/outcomes."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.api.batches import BatchView, Result, refused_result, stored_result
from diagnostics.ingest.outcomes import PostedOutcome, record_outcomes
from diagnostics.rest.batches import RefusedItem, read_item
from diagnostics.rest.bodies import Batch
from diagnostics.rest.examples import OUTCOMES, OUTCOMES_RESULT
from diagnostics.rest.openapi import REFUSALS, BatchResultResource
from diagnostics.rest.resources import describe_model


class OutcomesView(BatchView):
    """Runs that were counted where they ran."""

    @extend_schema(
        operation_id="outcomes_create",
        request={
            "application/json": {"type": "array", "items": describe_model(PostedOutcome)},
            "application/x-ndjson": {"type": "string"},
        },
        examples=[OUTCOMES, OUTCOMES_RESULT],
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultResource, 207: BatchResultResource, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Add pre-counted runs: each (source, minute, sequence) once."""
        return self.take(request, store_outcomes)


def store_outcomes(key: ApiKey, batch: Batch, keep_share: float) -> list[Result]:
    """Check and store the items of a batch; one result per item, in order, committed."""
    checked = [read_item(item, PostedOutcome) for item in batch.items]
    good = [item for item in checked if isinstance(item, PostedOutcome)]
    said = iter(record_outcomes(key.project_id, good))
    return [
        refused_result(index, item)
        if isinstance(item, RefusedItem)
        else stored_result(index, None, next(said))
        for index, item in enumerate(checked)
    ]
