"""Help: documentation as it is shipped, keyboard shortcuts, what is new."""

import re
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.navigation import MAIN, MORE, Destination
from diagnostics.web.pages import respond
from failsoft import VERSION

NEWS_SHOWN = 12
ITEM = re.compile(r"^- (.+(?:\n  .+)*)", re.MULTILINE)
CHANGED = re.compile(r"^Changed:\n(.*?)(?=^[A-Z]\w+:$|^## |\Z)", re.MULTILINE | re.DOTALL)
MARKUP = re.compile(r"\[([^\]]+)\]\([^)]+\)|[`*]")


@require_safe
@member_view
def help_page(request: ConsoleRequest) -> HttpResponse:
    """Show the list of documents, the shortcuts and the latest changes."""
    context = {
        "section": "help",
        "documents": sorted((_title(path), name) for name, path in _documents().items()),
        "keys": _keyed(),
        "news": _news(),
        "version": VERSION,
    }
    return respond(request, "help/help", context, "Help")


@require_safe
@member_view
def document(request: ConsoleRequest, name: str) -> HttpResponse:
    """Show a document of the installed version as text."""
    path = _documents().get(name)
    if path is None:
        raise Http404
    title = _title(path)
    context = {"section": "help", "title": title, "text": path.read_text("utf-8")}
    return respond(request, "help/document", context, f"{title} · Help")


def _keyed() -> list[Destination]:
    pages = [*MAIN, *(page for group in MORE.values() for page in group)]
    return [page for page in pages if page.key]


@cache
def _documents() -> dict[str, Path]:
    return {path.stem: path for path in (settings.BASE_DIR / "docs").glob("*.md")}


@cache
def _title(path: Path) -> str:
    """Return the heading that a document begins with."""
    return path.read_text("utf-8").partition("\n")[0].lstrip("# ")


@cache
def _news() -> list[str]:
    """Return the latest changes, without their markup; none where the file is not shipped."""
    path = settings.BASE_DIR / "CHANGELOG.md"
    changed = CHANGED.search(path.read_text("utf-8")) if path.exists() else None
    items = ITEM.findall(changed[1]) if changed else []
    return [MARKUP.sub(r"\1", " ".join(item.split())) for item in items[:NEWS_SHOWN]]
