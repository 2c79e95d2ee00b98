"""What all settings pages share: who may, tabs, and proving again who asks."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers

from diagnostics.accounts.models import Membership
from diagnostics.web.access import ConsoleRequest, frame_of, may_administer, member_view, role_of
from diagnostics.web.pages import respond

P = ParamSpec("P")
ADMINS_NAMED = 5
WANTED = "Set up a second factor first: administrators change keys, members and providers."


def settings_view(
    view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
) -> Callable[Concatenate[ConsoleRequest, P], HttpResponse]:
    """Let administrators of the project in; tell others who they are."""

    @wraps(view)
    def guarded(request: ConsoleRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not may_administer(request):
            return _explain(request)
        if settings.FAILSOFT_REQUIRE_MFA and not is_mfa_enabled(request.user):
            messages.warning(request, WANTED)
            return redirect("mfa_index")
        return view(request, *args, **kwargs)

    return member_view(guarded)


def require_proof(request: ConsoleRequest) -> None:
    """Lead to proving again who one is, unless it was done in the last minutes.

    What was sent is kept and carried out afterwards.
    """
    raise_if_reauthentication_required(request, app="")


def show(
    request: ConsoleRequest, name: str, context: Mapping[str, object], title: str
) -> HttpResponse:
    """Render a settings page by the last part of its URL name."""
    frame = {"section": "settings", "tab": f"settings_{name}"}
    return respond(request, f"settings/{name}", {**frame, **context}, f"{title} · Settings")


def show_once(
    request: ConsoleRequest, name: str, context: Mapping[str, object], title: str
) -> HttpResponse:
    """Render a page that holds a secret: nobody keeps a copy of it."""
    return unkept(show(request, name, context, title))


def unkept(answer: HttpResponse) -> HttpResponse:
    """Return an answer that nobody keeps a copy of."""
    add_never_cache_headers(answer)
    answer["Cache-Control"] = "no-store"
    del answer["ETag"]
    return answer


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
