from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class PlansConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "plans"
    label = "plans"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the tools of every installed app, and mask the credentials of servers."""
        from plans.tools import builtin  # noqa: F401, PLC0415 - needs ready apps
        from plans.tools.mcp.health import mask_credentials  # noqa: PLC0415 - needs ready apps

        mask_credentials()
        autodiscover_modules("failsoft_tools")
