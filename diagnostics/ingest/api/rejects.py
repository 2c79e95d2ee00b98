"""GET /api/v1/rejects and /api/v1/ingest: what was refused, and how ingestion stands."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.ingest.models import Reject
from diagnostics.ingest.quotas import standing_of
from diagnostics.ingest.rejects import rejects_of
from diagnostics.rest.cursors import read_key
from diagnostics.rest.examples import INGEST, REJECTS
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import PAGE_PARAMETERS, read_list_limit, refuse_unknown
from diagnostics.rest.openapi import (
    EXPORTS,
    FaultSerializer,
    Numbers,
    ProblemSerializer,
    Shares,
    Texts,
)


class RejectSerializer(serializers.Serializer[Any]):
    """One refused request or item, redacted."""

    id = Numbers()
    received_at = serializers.DateTimeField()
    endpoint = Texts()
    http_status = Numbers()
    key_id = Texts(allow_null=True)
    key_name = Texts(allow_null=True)
    source = Texts(allow_null=True)  # type: ignore[assignment] # the wire calls it so
    index = Numbers(allow_null=True, help_text="in its batch; null: the whole request")
    event_id = Texts(allow_null=True)
    code = Texts()
    path = Texts(allow_blank=True, help_text="JSON pointer into the item")
    message = Texts()
    errors = FaultSerializer(many=True)  # type: ignore[assignment] # the wire calls it so
    head = Texts(allow_blank=True, help_text="how it began, at most 2 KiB")
    size_bytes = Numbers()


class RejectPageSerializer(serializers.Serializer[Any]):
    """A page of the rejects inbox, newest first."""

    items = RejectSerializer(many=True)
    next = Texts(allow_null=True)


class LimitsSerializer(serializers.Serializer[Any]):
    """What may be sent, in events; 0 is no limit."""

    key_events_per_second = Numbers()
    key_burst_events = Numbers()
    events_per_day = Numbers()
    events_per_month = Numbers()
    spike_events_per_minute = Numbers()


class SentSerializer(serializers.Serializer[Any]):
    """What a project has sent on one day (UTC), to the last slice of each process."""

    day = serializers.DateField()
    events = Numbers()
    sampled_out = Numbers(help_text="previews that were not kept")
    refused = Numbers(help_text="events refused with 429")


class IngestSerializer(serializers.Serializer[Any]):
    """How ingestion of the project stands."""

    limits = LimitsSerializer()
    today = SentSerializer()
    events_this_month = Numbers()
    last_minute_events = Numbers()
    preview_share = Shares(help_text="of previews that are kept now")
    rejects = Numbers(help_text="in the inbox, at most the number that is kept")


COLUMNS = list(RejectSerializer._declared_fields)
PARAMETERS = [
    OpenApiParameter("code", str, description="exact"),
    OpenApiParameter("source", str, description="exact"),
    OpenApiParameter("endpoint", str, description="exact"),
    *PAGE_PARAMETERS,
]
READ: dict[str, Scope] = {"GET": Scope.READ, "OPTIONS": Scope.READ}


class RejectsView(ListView):
    """The rejects inbox."""

    required_scopes = READ

    @extend_schema(
        operation_id="rejects_list",
        parameters=PARAMETERS,
        examples=[REJECTS],
        responses={200: RejectPageSerializer, **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List what was refused, newest first, with its redacted head."""
        asked = request.query_params.dict()
        refuse_unknown(asked, PARAMETERS)
        found = rejects_of(project_of(request).pk).select_related("api_key")
        for name in ("code", "source", "endpoint"):
            if asked.get(name):
                found = found.filter(**{name: asked[name].replace("\0", "")})

        def read_page(limit: int, cursor: str | None) -> Page:
            after = found.filter(pk__lt=read_key(cursor, int)) if cursor else found
            rows = list(after[: limit + 1])
            more = str(rows[limit - 1].pk) if len(rows) > limit else None
            return [describe_reject(row) for row in rows[:limit]], more

        limit = read_list_limit(request, 100_000)
        return self.answer_list(request, COLUMNS, read_page, limit, asked.get("cursor"))


class IngestView(KeyedView):
    """How ingestion of a project stands."""

    required_scopes = READ

    @extend_schema(
        operation_id="ingest_retrieve",
        examples=[INGEST],
        responses={
            200: IngestSerializer,
            **dict.fromkeys((401, 403, 503), ProblemSerializer),
        },
    )
    def get(self, request: Request) -> Response:
        """Show limits, what was sent, and the share of previews that is kept."""
        key = key_of(request)
        standing = standing_of(key)
        rejects = rejects_of(key.project_id).count()
        return Response({**standing, "rejects": rejects})


def describe_reject(row: Reject) -> dict[str, Any]:
    """Return a reject in the wire format."""
    other = {
        "key_id": row.api_key.key_id if row.api_key else None,
        "key_name": row.api_key.name if row.api_key else None,
        "index": row.item_index,
    }
    names = [name for name in COLUMNS if name not in other]
    told = {name: getattr(row, name) for name in names} | other
    return {name: told[name] for name in COLUMNS}
