"""Stop and resume planning, and purge recorded data."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from agents.goals.models import Goal
from agents.goals.planning_stops import resume_planning, stop_planning, stops_of
from agents.llm.forms import PurgeForm
from agents.purge.purging import order_purge, orders_of
from diagnostics.accounts.models import Project
from diagnostics.settings.frame import require_proof, settings_view, show
from diagnostics.web.access import ConsoleRequest, user_of

ORDERS_SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
@settings_view
def planning(request: ConsoleRequest) -> HttpResponse:
    """Show whether planning is stopped; stop or resume it."""
    if request.method == "POST":
        _stop_or_resume(request)
        return redirect("settings_planning")
    stops = stops_of(request.project)
    queued = Goal.objects.filter(project=request.project, status=Goal.Status.QUEUED)
    context = {
        "here": next((stop for stop in stops if stop.project_id), None),
        "everywhere": next((stop for stop in stops if not stop.project_id), None),
        "queued": queued.count(),
        "may_everywhere": request.user.is_superuser,
    }
    return show(request, "planning", context, "Planning")


@require_http_methods(["GET", "HEAD", "POST"])
@settings_view
def purge(request: ConsoleRequest) -> HttpResponse:
    """Order a purge; its name is typed twice."""
    form = PurgeForm(request.POST or None, project=request.project)
    if request.method == "POST":
        require_proof(request)
        if form.is_valid():
            reference = form.cleaned_data["correlation_id"]
            order_purge(request.project, user_of(request), reference)
            messages.success(request, "Deletion started; a worker deletes in batches.")
            return redirect("settings_purge")
    orders = list(orders_of(request.project)[:ORDERS_SHOWN])
    waiting = any(order.status == "running" for order in orders)
    context = {"form": form, "orders": orders, "waiting": waiting}
    return show(request, "purge", context, "Purge")


def _stop_or_resume(request: ConsoleRequest) -> None:
    wants_all = request.POST.get("where") == "everywhere"
    if wants_all and not request.user.is_superuser:
        raise PermissionDenied
    project: Project | None = None if wants_all else request.project
    scope = "everywhere" if wants_all else f"in {request.project.name}"
    if request.POST.get("do") == "stop":
        stop_planning(project, user_of(request), request.POST.get("reason", "")[:200])
        messages.warning(request, f"Planning is stopped {scope}: goals stay queued.")
    else:
        resume_planning(project, user_of(request))
        messages.success(request, f"Planning resumed {scope}.")
