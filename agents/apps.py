import logging

import stamina.instrumentation
from django.apps import AppConfig

# At DEBUG they write whole requests: prompts and headers (S0-46).
TALKATIVE = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2")


class AgentsConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "agents"
    label = "agents"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Keep prompts out of the logs of the libraries that carry them."""
        for name in TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        # Retries are counted in the attempt's row instead.
        stamina.instrumentation.set_on_retry_hooks([])
