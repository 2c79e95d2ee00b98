from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class PlansConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "plans"
    label = "plans"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the tools of every installed app."""
        autodiscover_modules("failsoft_tools")
