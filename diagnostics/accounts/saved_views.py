"""Saved views: which ones a user may open, and the actions of their owners."""

from urllib.parse import parse_qsl, urlencode

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import NoReverseMatch, reverse

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import SavedView
from diagnostics.redaction.event_rows import NAME_FIELDS
from diagnostics.redaction.redactor import redact, redact_name

LONGEST_NAME = 100
LONGEST_QUERY = 8_000
MOST_FIELDS = 100
PLACES = frozenset({"before", "after", "cursor", "csrfmiddlewaretoken"})
MOST_VIEWS = 100
PAGES = {
    "now": "Now",
    "models": "Models",
    "failures": "Failures",
    "runs": "Runs",
    "incidents": "Incidents",
    "compare": "Compare",
    "prompts": "Prompts",
}
"""Pages that can be saved, by URL name."""
Person = AbstractBaseUser | AnonymousUser


class ViewNameError(ValueError):
    """the name is empty, too long, or the owner has a view of this name already"""


def views_for(project_id: int, person: Person) -> QuerySet[SavedView]:
    """Return the views that a user may open: their own, and shared ones."""
    views = SavedView.objects.filter(project_id=project_id)
    allowed = views.filter(Q(owner_id=person.pk or 0) | Q(is_shared=True))
    return allowed.select_related("owner").order_by("name", "pk")


def save_view(project_id: int, person: Person, name: str, page: str, query: str) -> SavedView:
    """Save a page with its query under a new name; ViewNameError if that is not possible."""
    if page not in PAGES:
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


def view_address(view: SavedView) -> str:
    """Return the URL of a view; that of the Now page if its page no longer exists."""
    try:
        path = reverse(view.page)
    except NoReverseMatch:
        path = reverse("now")
    return f"{path}?{view.query}" if view.query else path


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
