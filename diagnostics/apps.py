from django.apps import AppConfig


class DiagnosticsConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "diagnostics"
    label = "diagnostics"
    default_auto_field = "django.db.models.BigAutoField"
