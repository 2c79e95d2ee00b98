"""POST /api/v1/outcomes."""

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.api.batches import BatchView, StoredBatch, refused_result, stored_result
from diagnostics.ingest.assessments import PostedAssessment, record_assessments
from diagnostics.ingest.outcomes import PostedOutcome, record_outcomes
from diagnostics.rest.batches import BatchItem, RefusedItem, read_item
from diagnostics.rest.bodies import Batch
from diagnostics.rest.examples import ASSESSMENT, OUTCOMES, OUTCOMES_RESULT
from diagnostics.rest.openapi import REFUSALS, BatchResultResource
from diagnostics.rest.resources import describe_model


class OutcomesView(BatchView):
    """Runs counted by their agent, and late assessments of single runs."""

    @extend_schema(
        operation_id="outcomes_create",
        request={
            "application/json": {
                "type": "array",
                "items": {
                    "oneOf": [describe_model(PostedOutcome), describe_model(PostedAssessment)]
                },
            },
            "application/x-ndjson": {"type": "string"},
        },
        examples=[OUTCOMES, ASSESSMENT, OUTCOMES_RESULT],
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultResource, 207: BatchResultResource, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Add pre-counted runs, each (source, minute, sequence) once, or late outcomes of runs.

        An item with a `verdict` says whether the valid answer of one run was good or bad.
        """
        return self.take(request, store_outcomes)


def store_outcomes(key: ApiKey, batch: Batch, keep_share: float) -> StoredBatch:
    """Check and store the items of a batch; one result per item, in order, committed."""
    checked = [_read(item) for item in batch.items]
    counted = [item for item in checked if isinstance(item, PostedOutcome)]
    assessed = [item for item in checked if isinstance(item, PostedAssessment)]
    with transaction.atomic():
        outcome_results = iter(record_outcomes(key.project_id, counted))
        statuses = record_assessments(key.project_id, assessed)
    assessment_results = iter([(status, None) for status in statuses])
    results = [
        refused_result(index, item)
        if isinstance(item, RefusedItem)
        else stored_result(
            index,
            None,
            *next(outcome_results if isinstance(item, PostedOutcome) else assessment_results),
        )
        for index, item in enumerate(checked)
    ]
    return StoredBatch(results)


def _read(item: BatchItem) -> PostedOutcome | PostedAssessment | RefusedItem:
    if isinstance(item, dict) and ("verdict" in item or "correlation_id" in item):
        return read_item(item, PostedAssessment)
    return read_item(item, PostedOutcome)
