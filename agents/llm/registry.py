"""Clients of providers' rows; SDKs are imported on first use."""

import importlib
from functools import lru_cache
from typing import cast

from django.conf import settings

from agents.llm.models import Provider
from agents.llm.provider import CompletionProvider, RefusedCallError
from agents.llm.scripted import open_script
from diagnostics.outbound import credentials


def read_credential(reference: str) -> str | None:
    """Return the value of a reference and mask it everywhere; None for no reference.

    RefusedCallError names a reference that cannot be read.
    """
    if not reference:
        return None
    try:
        return credentials.read_credential(reference, "provider_key")
    except credentials.CredentialError as error:
        raise RefusedCallError(str(error)) from None


# Imported by name, so that a process that plans no goals never loads an SDK.
SDKS = {
    Provider.Adapter.OPENAI: ("agents.llm.openai", "OpenAIProvider"),
    Provider.Adapter.ANTHROPIC: ("agents.llm.anthropic", "AnthropicProvider"),
}
# Clients that a process keeps; the least recently used one is dropped.
CONNECTED = 32


def open_provider(row: Provider) -> CompletionProvider:
    """Return the client of a provider; RefusedCallError if its settings do not allow one."""
    if row.adapter == Provider.Adapter.SCRIPTED:
        if not settings.FAILSOFT_ALLOW_SCRIPTED:
            raise RefusedCallError("scripted providers are not allowed in this installation")
        return open_script(row.base_url)
    is_free = not row.base_url or row.allows_private or settings.FAILSOFT_HTTP_ALLOW_PRIVATE
    return _connect(row.adapter, row.base_url, read_credential(row.credential), is_free)


@lru_cache(CONNECTED)
def _connect(adapter: str, base_url: str, secret: str | None, is_free: bool) -> CompletionProvider:
    """Return a client that keeps its connections: creating one costs more than a call."""
    module, name = SDKS[Provider.Adapter(adapter)]
    client_class = getattr(importlib.import_module(module), name)
    return cast("CompletionProvider", client_class(base_url, secret, is_free))
