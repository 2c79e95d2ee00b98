"""Saved views: the list, and the actions of their owners."""

from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import SAVED_PAGES, Person, SavedView
from diagnostics.redaction.redactor import redact, redact_name
from diagnostics.web.pages import ConsoleRequest, member_action, member_page, own_page, respond
from failsoft.redaction.secret_names import NAME_FIELDS

LONGEST_NAME = 100
LONGEST_QUERY = 8_000
MOST_FIELDS = 100
PLACES = frozenset({"before", "after", "cursor", "csrfmiddlewaretoken"})
MOST_VIEWS = 100


class ViewNameError(ValueError):
    """the name is empty, too long, or the owner has a view of this name already"""


@member_page
def views(request: ConsoleRequest) -> HttpResponse:
    saved = SavedView.open_to(request.project.pk, request.user)
    rows = [(view, view.address, SAVED_PAGES.get(view.page, view.page)) for view in saved]
    return respond(request, "console/views", {"rows": rows, "section": "views"}, "Saved views")


@member_action
def save(request: ConsoleRequest) -> HttpResponse:
    data = request.POST
    try:
        view = save_view(
            request.project.pk,
            request.user,
            data.get("name", ""),
            data.get("page", ""),
            data.get("query", ""),
        )
    except ViewNameError as error:
        messages.error(request, f"Not saved: {error}.")
        return redirect(own_page(request, request.headers.get("Referer", ""), "/"))
    if data.get("is_shared"):
        share_view(view, request.user, is_shared=True)
    messages.success(request, f"Saved as “{view.name}”.")
    return redirect(view.address)


@member_action
def change(request: ConsoleRequest, view_id: int) -> HttpResponse:
    own = SavedView.objects.filter(project=request.project, owner_id=request.user.pk)
    view, verb = get_object_or_404(own, pk=view_id), request.POST.get("verb", "")
    if verb == "delete":
        delete_view(view, request.user)
        messages.success(request, f"“{view.name}” was deleted.")
    elif verb in {"share", "unshare"}:
        share_view(view, request.user, is_shared=verb == "share")
    elif verb == "rename":
        try:
            rename_view(view, request.user, request.POST.get("name", ""))
        except ViewNameError as error:
            messages.error(request, f"Not renamed: {error}.")
    return redirect("views")


def save_view(project_id: int, person: Person, name: str, page: str, query: str) -> SavedView:
    """Save a page with its query under a new name; ViewNameError if that is not possible."""
    if page not in SAVED_PAGES:
        raise ViewNameError("this page cannot be saved")
    cleaned = _clean_name(name)
    if SavedView.objects.filter(project_id=project_id, owner_id=person.pk).count() >= MOST_VIEWS:
        raise ViewNameError(f"there are {MOST_VIEWS} views already: delete one first")
    with transaction.atomic():
        view, is_new = SavedView.objects.get_or_create(
            project_id=project_id,
            owner_id=person.pk,
            name=cleaned,
            defaults={"page": page, "query": _clean_query(query)},
        )
        if not is_new:
            raise ViewNameError(TAKEN)
        note(project_id, person, "view.saved", cleaned, {"page": page})
    return view


def rename_view(view: SavedView, person: Person, name: str) -> None:
    """Rename a view; ViewNameError if that is not possible."""
    cleaned = _clean_name(name)
    if cleaned == view.name:
        return
    with transaction.atomic():
        own = SavedView.objects.select_for_update().filter(
            project_id=view.project_id, owner_id=view.owner_id
        )
        if cleaned in {other.name for other in own}:
            raise ViewNameError(TAKEN)
        own.filter(pk=view.pk).update(name=cleaned)
        note(view.project_id, person, "view.renamed", view.name, {"to": cleaned})


def share_view(view: SavedView, person: Person, *, is_shared: bool) -> None:
    with transaction.atomic():
        SavedView.objects.filter(pk=view.pk).update(is_shared=is_shared)
        action = "view.shared" if is_shared else "view.unshared"
        note(view.project_id, person, action, view.name)


def delete_view(view: SavedView, person: Person) -> None:
    with transaction.atomic():
        note(view.project_id, person, "view.deleted", view.name)
        view.delete()


def _clean_query(query: str) -> str:
    """Return a query string with redacted values and without list positions."""
    try:
        pairs = parse_qsl(query[:LONGEST_QUERY], max_num_fields=MOST_FIELDS)
    except ValueError:
        raise ViewNameError(f"it has more than {MOST_FIELDS} filters") from None
    return urlencode(
        [
            (key, redact_name(text) if key in NAME_FIELDS else redact(text))
            for key, text in pairs
            if key not in PLACES
        ]
    )


def _clean_name(name: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in name)
    cleaned = redact(" ".join(printable.split()))[:LONGEST_NAME]
    if not cleaned:
        raise ViewNameError("a view needs a name")
    return cleaned


TAKEN = "you have a view of this name already"
