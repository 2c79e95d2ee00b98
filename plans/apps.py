from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class PlansConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "plans"
    label = "plans"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the built-in tools and those of every installed app."""
        from plans.tools import builtin  # noqa: F401, PLC0415 - needs ready apps

        autodiscover_modules("failsoft_tools")
