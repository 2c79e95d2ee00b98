from django.apps import AppConfig


class DiagnosticsConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "diagnostics"
    label = "diagnostics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks and let redacted fields mask."""
        from diagnostics import checks  # noqa: F401, PLC0415 - needs ready apps
        from diagnostics.models.redacted import use_redactor  # noqa: PLC0415
        from diagnostics.redaction.redacting import redact  # noqa: PLC0415

        use_redactor(redact)
