from django.apps import AppConfig


class FailsoftConfig(AppConfig):
    """The house: system checks of the settings."""

    name = "config"
    label = "config"
    verbose_name = "Failsoft"

    def ready(self) -> None:
        """Load the Celery application and register the checks."""
        from config import celery, checks  # noqa: F401, PLC0415 - needs ready apps
