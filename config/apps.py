from django.apps import AppConfig

from diagnostics.redaction.redactor import register_settings_secrets


class FailsoftConfig(AppConfig):
    name = "config"
    verbose_name = "Failsoft"

    def ready(self) -> None:
        """Load the Celery application, register the checks, and mask the secrets of settings."""
        from config import celery, checks  # noqa: F401, PLC0415 - needs ready apps

        register_settings_secrets()
