"""`manage.py collectstatic`: Django's, and the wheel of the library beside the static files."""

from typing import Any

from django.contrib.staticfiles.management.commands import collectstatic

from config.packages import build_wheel


class Command(collectstatic.Command):
    """Collect static files, then build the wheel that the server offers."""

    def handle(self, **options: Any) -> str | None:
        message = super().handle(**options)
        if not options["dry_run"]:
            build_wheel()
        return message
