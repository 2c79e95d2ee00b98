"""GET /api/v1/entries: what the toolset `entries` has made, the most important first."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Entry
from agents.serializers import EntryPageSerializer, EntrySerializer
from diagnostics.access.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.api.filters import read_limit
from diagnostics.core.api_keys import Scope
from diagnostics.core.cleaning import clean_text
from diagnostics.core.cursors import BadCursorError
from diagnostics.serializers import ProblemSerializer

FILTERS = [
    OpenApiParameter("status", str, enum=Entry.Status.values),
    OpenApiParameter("category", str, enum=Entry.Category.values),
    OpenApiParameter("cursor", str),
    OpenApiParameter("limit", int),
]


class EntriesView(APIView):
    """The entries of the key's project."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="entries_list",
        parameters=FILTERS,
        responses={200: EntryPageSerializer, 400: ProblemSerializer},
    )
    def get(self, request: Request) -> Response:
        """List entries: P1 to P5, then those without a priority (S4-42)."""
        asked = request.query_params.dict()
        entries = Entry.objects.of(project_of(request).pk).by_importance()
        for name in ("status", "category"):
            if asked.get(name):
                entries = entries.filter(**{name: _one_of(name, asked[name])})
        if asked.get("cursor"):
            entries = entries.after(_read_cursor(request, asked["cursor"]))
        limit = read_limit(asked)
        found = list(entries[: limit + 1])
        after = found[limit - 1].pk if len(found) > limit else None
        items = EntrySerializer(found[:limit], many=True).data
        return Response({"items": items, "next": after})


def _one_of(name: str, value: str) -> str:
    known = {"status": Entry.Status.values, "category": Entry.Category.values}[name]
    if value not in known:
        raise ValidationError({name: f"expected one of {', '.join(known)}"})
    return value


def _read_cursor(request: Request, text: str) -> Entry:
    """The entry after which the page begins."""
    entry = Entry.objects.of(project_of(request).pk).filter(pk=clean_text(text)).first()
    if entry is None:
        raise BadCursorError
    return entry
