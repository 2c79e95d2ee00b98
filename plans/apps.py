from django.apps import AppConfig


class PlansConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "plans"
    label = "plans"
    default_auto_field = "django.db.models.BigAutoField"
