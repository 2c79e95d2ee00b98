"""API keys: created, shown once, rotated while two are active, revoked everywhere in 5 s.

And GET /api/v1/key: what the key of the request may do.
"""

from datetime import datetime
from operator import attrgetter
from typing import Annotated, ClassVar

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from drf_spectacular.utils import extend_schema
from pydantic import BeforeValidator, Field
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.authentication import KeyedView, key_of
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import IssuedKey, create_key, issue_key, revoke_key
from diagnostics.ingest.sources import key_state
from diagnostics.rest.resources import ProblemResource, Resource
from diagnostics.settings.forms import KeyForm
from diagnostics.settings.frame import (
    keep_once,
    require_proof,
    settings_action,
    settings_form,
    show,
    take_once,
    unkept,
)
from diagnostics.web.pages import ConsoleRequest, user_of

MOST_KEYS = 200
PAGE = "settings_keys"


@settings_form
def keys(request: ConsoleRequest) -> HttpResponse:
    form = KeyForm(request.POST or None)
    if request.method == "POST":
        require_proof(request)
        if form.is_valid():
            fields = form.cleaned_data
            scopes = [Scope(scope) for scope in fields["scopes"]]
            by, expires_at = user_of(request), form.expires_at(clock.now())
            return _keep(
                request, create_key(request.project, by, fields["name"], scopes, expires_at)
            )
    issued = take_once(request, PAGE)
    now = clock.now()
    ordered = ApiKey.objects.filter(project=request.project).order_by("-revoked_at", "name", "-pk")
    rows = [(key, key_state(key, now)) for key in ordered[:MOST_KEYS]]
    context = {"form": form, "rows": rows, "issued": issued}
    response = show(request, "keys", context, "API keys")
    return unkept(response) if issued else response


@settings_action
def rotate_key(request: ConsoleRequest, identity: int) -> HttpResponse:
    """Create a successor of a key; both are active until the old one is revoked."""
    require_proof(request)
    old = _key(request, identity)
    scopes = [Scope(scope) for scope in old.scopes]
    # It lasts as long as the old one did.
    expires_at = old.expires_at and clock.now() + (old.expires_at - old.created_at)
    with transaction.atomic():
        issued = issue_key(request.project, old.name, scopes, expires_at)
        details = {"key_id": issued.row.key_id, "successor_of": old.key_id}
        note(request.project.pk, user_of(request), "key.rotated", old.name, details)
    return _keep(request, issued, old)


@settings_action
def revoke(request: ConsoleRequest, identity: int) -> HttpResponse:
    require_proof(request)
    key = _key(request, identity)
    revoke_key(key, user_of(request))
    messages.success(request, f"{key.name} is revoked; every process refuses it within 5 seconds.")
    return redirect(PAGE)


def _key(request: ConsoleRequest, identity: int) -> ApiKey:
    return get_object_or_404(ApiKey, project=request.project, pk=identity, revoked_at=None)


def _keep(request: ConsoleRequest, issued: IssuedKey, old: ApiKey | None = None) -> HttpResponse:
    values = {
        "name": issued.row.name,
        "text": issued.text,
        "old": old.key_id if old else "",
        "scopes": " ".join(issued.row.scopes),
    }
    return keep_once(request, PAGE, values)


class KeyResource(Resource):
    """What a key may do; never its secret."""

    id: str = Field(validation_alias="key_id", description="the public part")
    name: str
    project: Annotated[str, BeforeValidator(attrgetter("slug"))]
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="updated once a minute")


class KeyView(KeyedView):
    required_scopes: ClassVar = {"GET": None, "OPTIONS": None}

    @extend_schema(
        operation_id="key_retrieve",
        responses={200: KeyResource, **dict.fromkeys((401, 503), ProblemResource)},
    )
    def get(self, request: Request) -> Response:
        """Show name, project, scopes and expiry of the key that sends the request."""
        return Response(KeyResource.dump(key_of(request)))
