"""Addresses of providers, as the SDKs take them."""

import httpx2

from agents.providers.base import RefusedCallError


def read_address(base_url: str) -> str | None:
    """Give the address for an SDK, None for its official one; RefusedCallError for no URL."""
    if not base_url:
        return None
    try:
        # The SDKs parse it when they are opened, and let this fault of it through.
        httpx2.URL(base_url)
    except httpx2.InvalidURL as error:
        raise RefusedCallError("the address of the provider is no URL") from error
    return base_url
