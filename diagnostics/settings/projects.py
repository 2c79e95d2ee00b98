"""Rename or create projects, and switch between them."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Membership, Project
from diagnostics.settings.forms import ProjectForm
from diagnostics.settings.frame import settings_form, show
from diagnostics.web.access import CHOSEN, ConsoleRequest, member_page, memberships_of, user_of


@member_page
def settings_index(request: ConsoleRequest) -> HttpResponse:
    """Redirect to the first page."""
    return redirect("settings_projects")


@settings_form
def projects(request: ConsoleRequest) -> HttpResponse:
    """Show the user's projects; rename this one or create another."""
    posted = request.POST.get("do")
    rename = ProjectForm(
        request.POST if posted == "rename" else None,
        instance=Project.objects.get(pk=request.project.pk),
        prefix="rename",
    )
    create = ProjectForm(request.POST if posted == "create" else None, prefix="create")
    if rename.is_bound and rename.is_valid():
        before, after = request.project.name, rename.cleaned_data["name"]
        with transaction.atomic():
            Project.objects.filter(pk=request.project.pk).update(name=after)
            details = {"from": before}
            note(request.project.pk, user_of(request), "project.renamed", after, details)
        messages.success(request, f"Project renamed to {after}.")
        return redirect("settings_projects")
    if create.is_bound and create.is_valid():
        request.session[CHOSEN] = _create(request, create).slug
        return redirect("settings_projects")
    return show(request, "projects", {"rename": rename, "create": create}, "Projects")


def _create(request: ConsoleRequest, form: ProjectForm) -> Project:
    """Create a project; its creator becomes its administrator."""
    name = form.cleaned_data["name"]
    with transaction.atomic():
        project = Project.objects.create(slug=form.make_slug(), name=name)
        Membership.objects.create(
            project=project, user=user_of(request), role=Membership.Role.ADMIN
        )
        note(project.pk, user_of(request), "project.created", name, {"slug": project.slug})
    messages.success(request, f"{name} created.")
    return project


@login_required
@require_POST
def switch_project(request: HttpRequest) -> HttpResponse:
    """Switch to a project; 404 for an unknown project or one of others."""
    slug = request.POST.get("project", "")
    if all(m.project.slug != slug for m in memberships_of(request)):
        raise Http404
    request.session[CHOSEN] = slug
    return redirect("now")
