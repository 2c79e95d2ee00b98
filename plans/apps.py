from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class PlansConfig(AppConfig):
    name = "plans"

    def ready(self) -> None:
        from plans.tools import builtin  # noqa: F401, PLC0415 - needs ready apps
        from plans.tools.mcp.health import mask_credentials  # noqa: PLC0415 - needs ready apps

        mask_credentials()
        autodiscover_modules("failsoft_tools")
