"""Projects: rename the one that is open, make another, switch."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from diagnostics.access.auditing import note
from diagnostics.models import Membership, Project
from diagnostics.views.access import CHOSEN, ConsoleRequest, member_view
from diagnostics.views.settings.forms import ProjectForm
from diagnostics.views.settings.frame import person, settings_view, show


@require_safe
@member_view
def settings_index(request: ConsoleRequest) -> HttpResponse:
    """Lead to the first page."""
    return redirect("settings_projects")


@require_http_methods(["GET", "HEAD", "POST"])
@settings_view
def projects(request: ConsoleRequest) -> HttpResponse:
    """Show the reader's projects; rename this one or make another."""
    posted = request.POST.get("do")
    rename = ProjectForm(
        request.POST if posted == "rename" else None,
        instance=Project.objects.get(pk=request.project.pk),
        prefix="rename",
    )
    create = ProjectForm(request.POST if posted == "create" else None, prefix="create")
    if rename.is_bound and rename.is_valid():
        _rename(request, rename)
        return redirect("settings_projects")
    if create.is_bound and create.is_valid():
        request.session[CHOSEN] = _create(request, create).slug
        return redirect("settings_projects")
    return show(request, "projects", {"rename": rename, "create": create})


def _rename(request: ConsoleRequest, form: ProjectForm) -> None:
    before, after = request.project.name, form.cleaned_data["name"]
    with transaction.atomic():
        Project.objects.filter(pk=request.project.pk).update(name=after)
        told = {"from": before}
        note(request.project.pk, person(request), "project.renamed", after, told)
    messages.success(request, f"The project is called {after} now.")


def _create(request: ConsoleRequest, form: ProjectForm) -> Project:
    """Make a project; who makes it administers it."""
    name = form.cleaned_data["name"]
    with transaction.atomic():
        made = Project.objects.create(slug=form.make_slug(), name=name)
        Membership.objects.create(project=made, user=person(request), role=Membership.Role.ADMIN)
        note(made.pk, person(request), "project.created", name, {"slug": made.slug})
    messages.success(request, f"{name} is there, and you administer it.")
    return made
