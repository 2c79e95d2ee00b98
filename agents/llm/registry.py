"""From a provider's row to the thing that answers; SDKs are imported where they are first used."""

import importlib
from functools import lru_cache
from typing import cast

from django.conf import settings

from agents.llm.models import Provider
from agents.llm.provider import CompletionProvider, RefusedCallError
from agents.llm.scripted import open_script
from diagnostics.outbound import credentials


class ProviderCredentialError(RefusedCallError):
    """the credential of a provider cannot be read; the message names the reference"""


def read_credential(reference: str) -> str | None:
    """Return the value behind a reference and have it masked everywhere; None for no reference."""
    if not reference:
        return None
    try:
        return credentials.read_credential(reference, "provider_key")
    except credentials.CredentialError as error:
        raise ProviderCredentialError(str(error)) from None


# Imported by name, so that a process without goals to plan never loads an SDK.
SDKS = {
    Provider.Adapter.OPENAI: ("agents.llm.openai", "OpenAIProvider"),
    Provider.Adapter.ANTHROPIC: ("agents.llm.anthropic", "AnthropicProvider"),
}
# Clients that a process keeps; the longest unused one goes.
CONNECTED = 32


def open_provider(row: Provider) -> CompletionProvider:
    """The provider of a row; RefusedCallError when it cannot be used as it is set up."""
    if row.adapter == Provider.Adapter.SCRIPTED:
        if not settings.FAILSOFT_ALLOW_SCRIPTED:
            raise RefusedCallError("scripted providers are not allowed in this installation")
        return open_script(row.base_url)
    return _connect(row.adapter, row.base_url, read_credential(row.credential))


@lru_cache(CONNECTED)
def _connect(adapter: str, base_url: str, secret: str | None) -> CompletionProvider:
    """A client that keeps its connections: making one anew costs more than a call."""
    module, name = SDKS[Provider.Adapter(adapter)]
    made = getattr(importlib.import_module(module), name)
    return cast("CompletionProvider", made(base_url, secret))
