"""What an SDK's fault means to us; both official SDKs name theirs alike."""

from types import ModuleType

import httpx

from agents.providers.base import (
    CallTimeoutError,
    ProviderError,
    RateLimitedError,
    RefusedCallError,
    UnavailableError,
)
from agents.providers.headers import read_retry_after

REQUEST_TIMEOUT = 408
SERVER_ERROR = 500
TOO_MANY = 429


def translate_fault(sdk: ModuleType, error: Exception) -> ProviderError:
    """The ProviderError that an error of `sdk` (openai or anthropic) is."""
    if isinstance(error, sdk.APITimeoutError):
        return CallTimeoutError("no answer in time")
    if isinstance(error, sdk.APIConnectionError):
        return UnavailableError("the provider cannot be reached")
    if isinstance(error, sdk.APIStatusError):
        return translate_answer(error.response)
    return RefusedCallError(f"the SDK gave up: {type(error).__name__}")


def translate_answer(response: httpx.Response) -> ProviderError:
    """The ProviderError that an answer without success is, with the wait it asks for."""
    wait = read_retry_after(response.headers)
    said = f"the provider answered {response.status_code}"
    if response.status_code == TOO_MANY:
        return RateLimitedError(said, retry_after_seconds=wait)
    if response.status_code == REQUEST_TIMEOUT or response.status_code >= SERVER_ERROR:
        return UnavailableError(said, retry_after_seconds=wait)
    return RefusedCallError(said)
