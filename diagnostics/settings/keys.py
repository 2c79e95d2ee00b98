"""API keys: created, shown once, rotated while two are active, revoked everywhere in 5 s."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import IssuedKey, create_key, issue_key, revoke_key
from diagnostics.ingest.sources import key_state
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
