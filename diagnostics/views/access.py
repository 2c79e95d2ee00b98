"""Who may see what: a console view is given the project its reader has chosen."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

from diagnostics.models import Membership, Project

P = ParamSpec("P")
CHOSEN = "project"


class ConsoleRequest(HttpRequest):
    """What `member_view` adds to a request: the project it is about."""

    htmx: HtmxDetails
    project: Project
    memberships: Sequence[Membership]


def member_view(
    view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
) -> Callable[Concatenate[ConsoleRequest, P], HttpResponse]:
    """Let members of a project in; others sign in first, or learn that they have none.

    The project is the one chosen in the session, else the first by name. A project the
    reader is not a member of is never chosen, so every query below is theirs to make.
    """

    @wraps(view)
    def guarded(
        request: ConsoleRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        memberships = memberships_of(request)
        if not memberships:
            return render(request, "console/no_project.html", status=403)
        request.memberships = memberships
        request.project = _chosen(memberships, request.session.get(CHOSEN)).project
        return view(request, *args, **kwargs)

    return guarded


def _to_sign_in(request: ConsoleRequest) -> HttpResponse:
    """Lead to signing in; a refresh in a page must not swap the form into that page."""
    if request.htmx:
        return HttpResponseClientRefresh()
    return redirect_to_login(request.get_full_path())


def may_act(request: ConsoleRequest) -> bool:
    """Ask whether the member may submit, answer and cancel, not only look."""
    return _role(request) != Membership.Role.VIEWER


def may_administer(request: ConsoleRequest) -> bool:
    """Ask whether the member may change how the project is set up."""
    return _role(request) == Membership.Role.ADMIN


def memberships_of(request: HttpRequest) -> Sequence[Membership]:
    """Give the reader's memberships with their projects, by name."""
    mine = Membership.objects.filter(user_id=request.user.pk or 0)
    return list(mine.select_related("project").order_by("project__name", "pk"))


def _role(request: ConsoleRequest) -> str:
    return next(m.role for m in request.memberships if m.project == request.project)


def _chosen(memberships: Sequence[Membership], slug: str | None) -> Membership:
    found = (m for m in memberships if m.project.slug == slug)
    return next(found, memberships[0])
