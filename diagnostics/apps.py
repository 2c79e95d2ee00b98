from django.apps import AppConfig


class DiagnosticsConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "diagnostics"
    label = "diagnostics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks."""
        from diagnostics import checks  # noqa: F401, PLC0415 - needs ready apps
