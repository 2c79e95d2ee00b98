"""Verdicts for pages, kept for a moment: many look at the same one, and look again."""

from collections import OrderedDict
from datetime import datetime, timedelta

from django.conf import settings

from diagnostics.core.selection import Selection
from diagnostics.core.windows import floor
from diagnostics.verdicts import Verdict, verdict_of

MOST_KEPT = 256

_Key = tuple[int, str, datetime]
_kept: OrderedDict[_Key, Verdict] = OrderedDict()


def recent_verdict_of(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Give the verdict of a selection, at most FAILSOFT_VERDICT_SECONDS old.

    Each process keeps its own; what was decided or posted shows within that time.
    """
    seconds = settings.FAILSOFT_VERDICT_SECONDS
    if not seconds:
        return verdict_of(project_id, selection, now)
    key = (project_id, selection.query(), floor(now, timedelta(seconds=seconds)))
    found = _kept.get(key)
    if found is None:
        found = _kept[key] = verdict_of(project_id, selection, now)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return found
