"""Retention: how long what is kept, and how much room it takes."""

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.storage.retention import daily_growth_bytes, storage_sizes
from diagnostics.views.access import ConsoleRequest
from diagnostics.views.settings.frame import settings_view, show

TABLES_SHOWN = 12
KEPT = (
    ("Previews, errors and repairs", "KEEP_PAYLOAD_DAYS", "days"),
    ("Events", "KEEP_EVENT_DAYS", "days"),
    ("Counts by minute", "KEEP_MINUTE_HOURS", "hours"),
    ("Counts by hour", "KEEP_HOUR_MONTHS", "months"),
    ("Raw text of goals and runs, after they ended", "WORKING_KEEP_HOURS", "hours"),
)


@require_safe
@settings_view
def retention(request: ConsoleRequest) -> HttpResponse:
    """Show what is kept for how long, the room of each table, and how fast it grows."""
    sizes = storage_sizes()
    context = {
        "kept": [
            (told, getattr(settings, f"FAILSOFT_{name}"), unit, f"FAILSOFT_{name}")
            for told, name, unit in KEPT
        ],
        "sizes": sizes[:TABLES_SHOWN],
        "left_out": sizes[TABLES_SHOWN:],
        "left_out_bytes": sum(size.bytes for size in sizes[TABLES_SHOWN:]),
        "total_bytes": sum(size.bytes for size in sizes),
        "growth_bytes": daily_growth_bytes(clock.now()),
        "rejects_kept": settings.FAILSOFT_REJECTS_KEPT,
    }
    return show(request, "retention", context)
