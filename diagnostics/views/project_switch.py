"""Choose among the projects one is a member of."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from diagnostics.views.access import CHOSEN, memberships_of


@login_required
@require_POST
def switch_project(request: HttpRequest) -> HttpResponse:
    """Remember the choice; a foreign project and an unknown one are both not found."""
    slug = request.POST.get("project", "")
    if all(m.project.slug != slug for m in memberships_of(request)):
        raise Http404
    request.session[CHOSEN] = slug
    return redirect("now")
