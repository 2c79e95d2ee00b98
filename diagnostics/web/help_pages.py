"""Help: the way to the documentation, keyboard shortcuts, what is new."""

import re
from functools import cache

from django.conf import settings
from django.http import HttpResponse

from diagnostics.web.access import ConsoleRequest, member_page
from diagnostics.web.navigation import MAIN, MORE, Destination
from diagnostics.web.pages import respond
from failsoft import VERSION

NEWS_SHOWN = 12
ITEM = re.compile(r"^- (.+(?:\n  .+)*)", re.MULTILINE)
CHANGED = re.compile(r"^Changed:\n(.*?)(?=^[A-Z]\w+:$|^## |\Z)", re.MULTILINE | re.DOTALL)
MARKUP = re.compile(r"\[([^\]]+)\]\([^)]+\)|[`*]")


@member_page
def help_page(request: ConsoleRequest) -> HttpResponse:
    """Show the way to the documentation, the shortcuts and the latest changes."""
    context = {
        "section": "help",
        "has_docs": (settings.BASE_DIR / "site" / "docs").is_dir(),
        "keys": _keyed(),
        "news": _news(),
        "version": VERSION,
    }
    return respond(request, "help/help", context, "Help")


def _keyed() -> list[Destination]:
    pages = [*MAIN, *(page for group in MORE.values() for page in group)]
    return [page for page in pages if page.key]


@cache
def _news() -> list[str]:
    """Return the latest changes, without their markup; none where the file is not shipped."""
    path = settings.BASE_DIR / "CHANGELOG.md"
    changed = CHANGED.search(path.read_text("utf-8")) if path.exists() else None
    items = ITEM.findall(changed[1]) if changed else []
    return [MARKUP.sub(r"\1", " ".join(item.split())) for item in items[:NEWS_SHOWN]]
