from django.apps import AppConfig

from diagnostics.redaction.redactor import register_settings_secrets


class FailsoftConfig(AppConfig):
    """The house: system checks of the settings."""

    name = "config"
    label = "config"
    verbose_name = "Failsoft"

    def ready(self) -> None:
        """Load the Celery application, register the checks, mask our own secrets."""
        from config import celery, checks  # noqa: F401, PLC0415 - needs ready apps

        register_settings_secrets()
