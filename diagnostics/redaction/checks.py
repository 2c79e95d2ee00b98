"""System checks of the values registered for redaction."""

from collections.abc import Sequence

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004

from diagnostics.redaction.redactor import weak_kinds


@register(Tags.security)
def check_registered_values(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """diagnostics.W001: a registered value is too short to be masked."""
    return [
        Warning(
            f"The value registered as {kind} has fewer than 8 characters and is not masked.",
            hint="Use a longer one.",
            id="diagnostics.W001",
        )
        for kind in weak_kinds()
    ]
