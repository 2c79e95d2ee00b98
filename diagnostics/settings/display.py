"""The theme of all pages, and the notice about local mode."""

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from diagnostics.accounts.models import Profile
from diagnostics.accounts.profiles import NOTICE_DISMISSED, profile_of, remember
from diagnostics.web.access import own_page


@require_POST
@login_required
def theme(request: HttpRequest) -> HttpResponse:
    """Save the theme and redirect back."""
    chosen = request.POST.get("theme", "")
    if chosen not in Profile.Theme.values or not isinstance(request.user, User):
        raise Http404
    profile = profile_of(request.user)
    profile.theme = chosen
    profile.save()
    remember(request.session, profile)
    return _back(request)


@require_POST
@login_required
def dismiss_notice(request: HttpRequest) -> HttpResponse:
    """Hide the notice about local mode until the next sign-in."""
    request.session[NOTICE_DISMISSED] = True
    return _back(request)


def _back(request: HttpRequest) -> HttpResponse:
    return redirect(own_page(request, request.POST.get("next", ""), "/"))
