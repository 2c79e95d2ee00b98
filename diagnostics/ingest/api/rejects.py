"""GET /api/v1/rejects and /api/v1/ingest: what was refused, and the state of ingestion."""

from datetime import date, datetime

from django.db.models import F
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.ingest.quotas import quota_status
from diagnostics.ingest.rejects import rejects_of
from diagnostics.rest.cursors import read_key
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import PAGE_PARAMETERS, filter_exactly, refuse_unknown
from diagnostics.rest.resources import EXPORTS, Fault, Paged, ProblemResource, Resource


class RejectResource(Resource):
    """One refused request or item, redacted."""

    id: int
    received_at: datetime
    endpoint: str
    http_status: int
    key_id: str | None
    key_name: str | None
    source: str | None
    index: int | None = Field(description="in its batch; null: the whole request")
    event_id: str | None
    code: str
    path: str = Field(description="JSON pointer into the item")
    message: str
    errors: list[Fault]
    head: str = Field(description="how it began, at most 2 KiB")
    size_bytes: int


class LimitsResource(Resource):
    """What may be sent, in events; 0 is no limit."""

    key_events_per_second: int
    key_burst_events: int
    events_per_day: int
    events_per_month: int
    spike_events_per_minute: int


class SentResource(Resource):
    """What a project has sent on one day (UTC)."""

    day: date
    events: int = Field(validation_alias="sent")
    sampled_out: int = Field(description="previews that were not kept")
    refused: int = Field(description="events refused with 429")


class IngestResource(Resource):
    """The ingestion status of a project."""

    limits: LimitsResource
    today: SentResource
    events_this_month: int
    last_minute_events: int = Field(description="with what processes reserved for the next events")
    preview_share: float = Field(description="of previews that are kept now")
    rejects: int = Field(description="in the inbox, at most the number that is kept")


COLUMNS = tuple(RejectResource.model_fields)
PARAMETERS = [
    OpenApiParameter("code", str, description="exact"),
    OpenApiParameter("source", str, description="exact"),
    OpenApiParameter("endpoint", str, description="exact"),
    *PAGE_PARAMETERS,
]
READ = {"GET": Scope.READ}


class RejectsView(ListView):
    required_scopes = READ

    @extend_schema(parameters=PARAMETERS, responses={200: Paged[RejectResource], **EXPORTS})
    def get(self, request: Request) -> HttpResponseBase:
        """List what was refused, newest first, with its redacted head."""
        params = request.query_params.dict()
        refuse_unknown(params, PARAMETERS)
        rejects = rejects_of(project_of(request).pk).annotate(
            key_id=F("api_key__key_id"), key_name=F("api_key__name"), index=F("item_index")
        )
        rejects = filter_exactly(rejects, params, ("code", "source", "endpoint"))

        def read_page(limit: int, cursor: str | None) -> Page:
            after = rejects.filter(pk__lt=read_key(cursor, int)) if cursor else rejects
            rows = list(after[: limit + 1])
            next_cursor = str(rows[limit - 1].pk) if len(rows) > limit else None
            return [RejectResource.dump(row) for row in rows[:limit]], next_cursor

        return self.answer_list(request, COLUMNS, read_page)


class IngestView(KeyedView):
    required_scopes = READ

    @extend_schema(
        operation_id="ingest_retrieve",
        responses={200: IngestResource, **dict.fromkeys((401, 403, 503), ProblemResource)},
    )
    def get(self, request: Request) -> Response:
        """Show limits, usage and the share of previews that is kept."""
        key = key_of(request)
        rejects = rejects_of(key.project_id).count()
        return Response(IngestResource.dump({**quota_status(key), "rejects": rejects}))
