"""Maintenance windows become silences that begin later; of those that repeat, the next one.

A window that repeats is one more silence each time: what nobody plans anew is told again.
"""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import migrations
from django.utils import timezone

STEPS = {"daily": 1, "weekly": 7}


def plan_silences(apps: Any, _schema: object) -> None:  # noqa: ANN401 - Django's
    """Write a silence for each window that is on or to come."""
    silence = apps.get_model("diagnostics", "Silence")
    now = timezone.now()
    for window in apps.get_model("diagnostics", "MaintenanceWindow").objects.all():
        begin, end = next_stretch(window, now)
        if window.is_enabled and end > now:
            reason = f"{window.name} (maintenance window, {window.repeats})"
            silence.objects.create(
                project_id=window.project_id,
                filter=window.filter,
                starts_at=begin,
                ends_at=end,
                reason=reason,
                created_by_id=window.created_by_id,
            )


def next_stretch(window: Any, now: datetime) -> tuple[datetime, datetime]:  # noqa: ANN401 - a row
    """Return when a window begins and ends, at its local time, the first time that is not over."""
    begin, length = window.starts_at, window.ends_at - window.starts_at
    step = STEPS.get(window.repeats)
    if step and begin + length <= now:
        local = begin.astimezone(ZoneInfo(window.zone))
        days = (now - length - begin).days // step * step
        while local + timedelta(days=days) + length <= now:
            days += step
        begin = (local + timedelta(days=days)).astimezone(begin.tzinfo)
    return begin, begin + length


class Migration(migrations.Migration):
    dependencies = [("diagnostics", "0021_drop_wallboards")]

    operations = [
        migrations.RunPython(plan_silences, migrations.RunPython.noop),
        migrations.DeleteModel("MaintenanceWindow"),
    ]
