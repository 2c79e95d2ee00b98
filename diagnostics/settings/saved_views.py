"""Saved views: the list, and the actions of their owners."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from diagnostics.accounts import saved_views
from diagnostics.accounts.models import SavedView
from diagnostics.web.pages import ConsoleRequest, member_action, member_page, own_page, respond


@member_page
def views(request: ConsoleRequest) -> HttpResponse:
    saved = saved_views.views_for(request.project.pk, request.user)
    rows = [
        (view, saved_views.view_address(view), saved_views.PAGES.get(view.page, view.page))
        for view in saved
    ]
    return respond(request, "console/views", {"rows": rows, "section": "views"}, "Saved views")


@member_action
def save(request: ConsoleRequest) -> HttpResponse:
    data = request.POST
    try:
        view = saved_views.save_view(
            request.project.pk,
            request.user,
            data.get("name", ""),
            data.get("page", ""),
            data.get("query", ""),
        )
    except saved_views.ViewNameError as error:
        messages.error(request, f"Not saved: {error}.")
        return redirect(own_page(request, request.headers.get("Referer", ""), "/"))
    if data.get("is_shared"):
        saved_views.share_view(view, request.user, is_shared=True)
    messages.success(request, f"Saved as “{view.name}”.")
    return redirect(saved_views.view_address(view))


@member_action
def change(request: ConsoleRequest, view_id: int) -> HttpResponse:
    own = SavedView.objects.filter(project=request.project, owner_id=request.user.pk)
    view, verb = get_object_or_404(own, pk=view_id), request.POST.get("verb", "")
    if verb == "delete":
        saved_views.delete_view(view, request.user)
        messages.success(request, f"“{view.name}” was deleted.")
    elif verb in {"share", "unshare"}:
        saved_views.share_view(view, request.user, is_shared=verb == "share")
    elif verb == "rename":
        try:
            saved_views.rename_view(view, request.user, request.POST.get("name", ""))
        except saved_views.ViewNameError as error:
            messages.error(request, f"Not renamed: {error}.")
    return redirect("views")
