"""Pages of a list before or after an id: ids carry the time, so their order is the time's."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet


def page_by_id(rows: QuerySet[Any], chosen: Mapping[str, str], size: int) -> dict[str, Any]:
    """Return `found`, newest first, and from which ids newer and older ones are shown."""
    after, before = read_id(chosen.get("after")), read_id(chosen.get("before"))
    if after:
        cut = list(rows.filter(pk__gt=after).order_by("pk")[: size + 1])
        page, newer, older = cut[:size][::-1], len(cut) > size, True
    else:
        cut = list((rows.filter(pk__lt=before) if before else rows).order_by("-pk")[: size + 1])
        page, newer, older = cut[:size], before is not None, len(cut) > size
    return {
        "found": page,
        "newer": page[0].pk if page and newer else None,
        "older": page[-1].pk if page and older else None,
    }


def read_id(text: str | None) -> UUID | None:
    """Read an id as an address gives it; None when it is none."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
