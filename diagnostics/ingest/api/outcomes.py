"""POST /api/v1/outcomes."""

import json
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.api.batches import BatchView, StoredBatch, refused_result, stored_result
from diagnostics.ingest.assessments import PostedAssessment, record_assessments
from diagnostics.ingest.series_names import settle_names
from diagnostics.redaction.rules import redactor_of
from diagnostics.rest.batches import BatchItem, RefusedItem, read_item
from diagnostics.rest.bodies import Batch
from diagnostics.rest.resources import REFUSALS, BatchResultResource, describe_model
from diagnostics.store.sql import execute
from diagnostics.store.windows import TimeMark
from failsoft.events import PlausibleTime, Short, Whole
from failsoft.json_values import clean_text
from failsoft.redaction import Redact

MOST_RUNS = 10_000_000
COUNTS = (
    *("ok_first", "repaired", "degraded", "stubbed"),
    *("circuit_open", "provider_failed", "budget_exhausted"),
)
NODE = r"^[a-z][a-z0-9_-]{0,62}$"
Count = Annotated[int, Field(ge=0, le=MOST_RUNS, strict=True), Whole]


def require_whole_minute(value: datetime) -> datetime:
    """Refuse a time with seconds, which would be another row than that of its minute."""
    if value.second or value.microsecond:
        raise PydanticCustomError("whole_minute", "a minute without seconds")
    return value


class PostedOutcome(BaseModel):
    """Runs of one series that ended in one minute, by how they ended."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    minute: Annotated[PlausibleTime, AfterValidator(require_whole_minute)]
    sequence: Annotated[int, Field(ge=0, le=1_000_000, strict=True), Whole] = 0
    source: Short
    environment: Short | None = None
    node: Annotated[str, StringConstraints(pattern=NODE)]
    provider: Short | None = None
    model: Short | None = None
    release: Short | None = None
    prompt_version: Short | None = None
    schema_name: Short | None = Field(default=None, alias="schema")
    schema_version: Short | None = None
    ok_first: Count = 0
    repaired: Count = 0
    degraded: Count = 0
    stubbed: Count = 0
    circuit_open: Count = 0
    provider_failed: Count = 0
    budget_exhausted: Count = 0
    cancelled: Count = 0

    @property
    def runs(self) -> int:
        """The total number of runs, without those that their caller cancelled."""
        return sum(getattr(self, name) for name in COUNTS)


def make_outcome_row(index: int, outcome: PostedOutcome, redact: Redact) -> dict[str, Any]:
    row = outcome.model_dump(by_alias=True)
    for name, value in row.items():
        if isinstance(value, str):
            row[name] = redact(clean_text(value), None, is_name=True).text
    row["minute"] = outcome.minute.isoformat()
    # Not hashed if there are none, so that rows stored before keep their hash.
    hashed = {name: value for name, value in row.items() if name != "cancelled" or value}
    canonical = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    content_hash = sha256(canonical.encode()).hexdigest()
    return {**row, "index": index, "runs": outcome.runs, "content_hash": content_hash}


def record_outcomes(
    project_id: int, outcomes: Sequence[PostedOutcome]
) -> list[tuple[str, TimeMark | None]]:
    """Store outcomes in one statement; return the status and time mark of each.

    A new (source, minute, sequence) is created. With the same counts again it is a duplicate;
    with other counts it is a conflict that changes nothing.
    """
    if not outcomes:
        return []
    redact = redactor_of(project_id)
    rows = [make_outcome_row(index, outcome, redact) for index, outcome in enumerate(outcomes)]
    settle_names(project_id, rows)
    params = {"project": project_id, "rows": json.dumps(rows, ensure_ascii=False)}
    recorded = execute("record_outcomes", params)
    return [(status, mark and TimeMark(mark)) for _, status, mark in recorded]


class OutcomesView(BatchView):
    """Runs counted by their agent, and late assessments of single runs."""

    @extend_schema(
        request={
            "application/json": {
                "type": "array",
                "items": {
                    "oneOf": [describe_model(PostedOutcome), describe_model(PostedAssessment)]
                },
            },
            "application/x-ndjson": {"type": "string"},
        },
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultResource, 207: BatchResultResource, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Add pre-counted runs, each (source, minute, sequence) once, or late outcomes of runs.

        An item with a `verdict` says whether the valid answer of one run was good or bad.
        """
        return self.take(request, store_outcomes)


def store_outcomes(key: ApiKey, batch: Batch, keep_share: float) -> StoredBatch:
    checked = [_read(item) for item in batch.items]
    counted = [item for item in checked if isinstance(item, PostedOutcome)]
    assessed = [item for item in checked if isinstance(item, PostedAssessment)]
    with transaction.atomic():
        outcome_results = iter(record_outcomes(key.project_id, counted))
        statuses = record_assessments(key.project_id, assessed)
    assessment_results = iter([(status, None) for status in statuses])
    results = [
        refused_result(index, item.event_id, item.errors)
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
