"""Format times in one zone, which is always named."""

from datetime import UTC, datetime, tzinfo

FORMATS = {
    "clock": "%H:%M:%S",
    "minute": "%H:%M",
    "day": "%-d %b %H:%M",
    "date": "%-d %b %Y %H:%M",
    "full": "%Y-%m-%d %H:%M:%S",
}


def write_moment(
    at: datetime, form: str = "date", zone: tzinfo = UTC, now: datetime | None = None
) -> str:
    """Format a time in a zone, with the zone's name: `22 Nov 2026 20:40 Europe/Berlin`.

    `lately` includes the day only if it is not that of `now`; `ago` is the same.
    """
    local = at.astimezone(zone)
    if form in ("lately", "ago"):
        is_today = now is not None and local.date() == now.astimezone(zone).date()
        form = "minute" if is_today else "day"
    return f"{local.strftime(FORMATS[form])} {zone}"
