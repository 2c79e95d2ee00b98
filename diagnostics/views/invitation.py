"""Accepting an invitation: the link leads to signing in first, then asks once more."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from diagnostics.access.inviting import IN_SESSION, accept, find_invitation
from diagnostics.views.access import CHOSEN


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show who invites to what; a person who is signed in accepts with one button."""
    found = find_invitation(token)
    if found is None:
        return render(request, "settings/invitation_gone.html", status=404)
    request.session[IN_SESSION] = token
    user = request.user
    if request.method != "POST" or not user.is_authenticated:
        return render(request, "settings/invitation.html", {"invitation": found})
    del request.session[IN_SESSION]
    if not accept(found, user):
        return render(request, "settings/invitation_gone.html", status=404)
    request.session[CHOSEN] = found.project.slug
    messages.success(request, f"You are a member of {found.project.name} now.")
    return redirect("now")
