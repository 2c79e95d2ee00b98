from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "agents"
    label = "agents"
    default_auto_field = "django.db.models.BigAutoField"
