"""Shared by all settings pages: access, tabs, the password check, secrets shown once."""

from collections.abc import Mapping
from contextlib import suppress
from functools import wraps
from typing import ParamSpec

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from diagnostics.accounts.models import Membership
from diagnostics.outbound.credentials import WorkingKeyError, seal, unseal
from diagnostics.web.pages import (
    ConsoleRequest,
    ConsoleView,
    frame_of,
    may_administer,
    member_view,
    respond,
    role_of,
)

P = ParamSpec("P")
ADMINS_NAMED = 5
# Session key of a secret that the next page shows.
ONCE = "shown_once"
IDENTITY = ("failsoft", "shown once")
SET_UP_MFA = "Set up MFA first: administrators change keys, members and providers."


def settings_view(view: ConsoleView[P]) -> ConsoleView[P]:
    """Admit administrators of the project; show other members who they are."""

    @wraps(view)
    def guarded(request: ConsoleRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not may_administer(request):
            return _explain(request)
        if settings.FAILSOFT_REQUIRE_MFA and not is_mfa_enabled(request.user):
            messages.warning(request, SET_UP_MFA)
            return redirect("mfa_index")
        return view(request, *args, **kwargs)

    return member_view(guarded)


def settings_page(view: ConsoleView[P]) -> ConsoleView[P]:
    return require_safe(settings_view(view))


def settings_form(view: ConsoleView[P]) -> ConsoleView[P]:
    return require_http_methods(["GET", "HEAD", "POST"])(settings_view(view))


def settings_action(view: ConsoleView[P]) -> ConsoleView[P]:
    return require_POST(settings_view(view))


def require_proof(request: ConsoleRequest) -> None:
    """Require a password check unless there was one in the last minutes.

    The request is stored and repeated afterwards.
    """
    raise_if_reauthentication_required(request, app="")


def show(
    request: ConsoleRequest, name: str, context: Mapping[str, object], title: str
) -> HttpResponse:
    """Render a settings page by the last part of its URL name."""
    frame = {"section": "settings", "tab": f"settings_{name}"}
    return respond(request, f"settings/{name}", {**frame, **context}, f"{title} · Settings")


def keep_once(request: ConsoleRequest, name: str, values: Mapping[str, str]) -> HttpResponse:
    """Redirect to a page that shows a secret once; it is stored encrypted in the session.

    The page has its own URL, also after a password check, and can be reloaded.
    """
    request.session[ONCE] = seal((*IDENTITY, name), dict(values)).hex()
    return redirect(name)


def take_once(request: ConsoleRequest, name: str) -> Mapping[str, str]:
    """Return and forget the secret of this page; empty if there is none."""
    sealed = request.session.get(ONCE)
    if sealed is None:
        return {}
    with suppress(WorkingKeyError):
        values: Mapping[str, str] = unseal((*IDENTITY, name), bytes.fromhex(sealed))
        del request.session[ONCE]
        return values
    return {}


def unkept(response: HttpResponse) -> HttpResponse:
    add_never_cache_headers(response)
    response["Cache-Control"] = "no-store"
    del response["ETag"]
    return response


def _explain(request: ConsoleRequest) -> HttpResponse:
    admins = Membership.objects.filter(
        project=request.project, role=Membership.Role.ADMIN, user__is_active=True
    )
    names = admins.order_by("user__username").values_list("user__username", flat=True)
    context = {
        **frame_of(request),
        "section": "settings",
        "role": role_of(request),
        "admins": names[:ADMINS_NAMED],
    }
    return render(request, "settings/not_admin.html", context, status=403)
