"""Stop and resume planning, purge recorded data, delete a project."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect

from agents.goals.claims import resume_planning, stop_planning, stops_of
from agents.goals.models import Goal
from agents.llm.forms import ProjectDeletionForm, PurgeForm
from agents.purge.purging import StillAtWorkError, order_deletion, order_purge, orders_of
from diagnostics.accounts.models import Project
from diagnostics.settings.frame import require_proof, settings_form, show
from diagnostics.web.pages import ConsoleRequest, memberships_of, user_of

ORDERS_SHOWN = 20


@settings_form
def planning(request: ConsoleRequest) -> HttpResponse:
    if request.method == "POST":
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


@settings_form
def purge(request: ConsoleRequest) -> HttpResponse:
    is_of_project = request.POST.get("do") == "delete_project"
    posted = request.POST or None
    form = PurgeForm(None if is_of_project else posted, project=request.project)
    deletion = ProjectDeletionForm(
        posted if is_of_project else None, project=request.project, prefix="project"
    )
    if request.method == "POST":
        require_proof(request)
        if deletion.is_valid() and _delete_project(request, deletion):
            return redirect("now")
        if form.is_valid():
            reference = form.cleaned_data["correlation_id"]
            order_purge(request.project, user_of(request), reference)
            messages.success(request, "Deletion started; a worker deletes in batches.")
            return redirect("settings_purge")
    orders = list(orders_of(request.project)[:ORDERS_SHOWN])
    waiting = any(order.status == "running" for order in orders)
    context = {"form": form, "deletion": deletion, "orders": orders, "waiting": waiting}
    return show(request, "purge", context, "Purge")


def _delete_project(request: ConsoleRequest, form: ProjectDeletionForm) -> bool:
    """Order the deletion; False, with an error in the form, where it has to wait."""
    if len(memberships_of(request)) == 1:
        form.add_error(None, "This is your only project: create another one first.")
        return False
    try:
        order_deletion(request.project, user_of(request))
    except StillAtWorkError:
        form.add_error(None, "Goals or plan runs are active: cancel them first.")
        return False
    messages.success(request, f"{request.project.name} is closed; a worker deletes its data.")
    return True
