"""From a provider's row to the thing that answers; SDKs are imported where they are first used."""

import importlib
from functools import lru_cache
from typing import cast

from django.conf import settings

from agents.models import Provider as ProviderRow
from agents.providers.base import Provider, RefusedCallError
from agents.providers.credentials import read_credential
from agents.providers.scripted import open_script

# Imported by name, so that a process without goals to plan never loads an SDK.
SDKS = {
    ProviderRow.Adapter.OPENAI: ("agents.providers.openai", "OpenAIProvider"),
    ProviderRow.Adapter.ANTHROPIC: ("agents.providers.anthropic", "AnthropicProvider"),
}
# Clients that a process keeps; the longest unused one goes.
CONNECTED = 32


def open_provider(row: ProviderRow) -> Provider:
    """The provider of a row; RefusedCallError when it cannot be used as it is set up."""
    if row.adapter == ProviderRow.Adapter.SCRIPTED:
        if not settings.FAILSOFT_ALLOW_SCRIPTED:
            raise RefusedCallError("scripted providers are not allowed in this installation")
        return open_script(row.base_url)
    return _connect(row.adapter, row.base_url, read_credential(row.credential))


@lru_cache(CONNECTED)
def _connect(adapter: str, base_url: str, secret: str | None) -> Provider:
    """A client that keeps its connections: making one anew costs more than a call."""
    module, name = SDKS[ProviderRow.Adapter(adapter)]
    made = getattr(importlib.import_module(module), name)
    return cast("Provider", made(base_url, secret))
