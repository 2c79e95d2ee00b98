"""Transport retries, which are not attempts: at most two, never after an answer."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.request import getproxies, proxy_bypass
from weakref import finalize

import httpx
import stamina

from agents.llm.provider import (
    CallTimeoutError,
    Completion,
    CompletionProvider,
    CompletionRequest,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedCallError,
)
from diagnostics.outbound.addresses import ForbiddenAddressError, PrivateAddressError, choose_target
from diagnostics.redaction.redactor import redact
from failsoft.json_values import clean_text

MAX_RETRIES = 2
MAX_WAIT_SECONDS = 5.0
FIRST_WAIT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer or the error of a call, and how often it was retried."""

    completion: Completion | None
    error: ProviderError | None
    retries: int
    # False if there was no provider to send it to.
    was_sent: bool = True


def call(
    provider: CompletionProvider, request: CompletionRequest, *, max_retries: int = MAX_RETRIES
) -> Reply:
    """Call once, and retry only after a transport error; never raises ProviderError."""
    tries = 0
    try:
        for attempt in stamina.retry_context(
            on=_wait_before_retry,
            attempts=max_retries + 1,
            timeout=None,
            wait_initial=FIRST_WAIT_SECONDS,
            wait_max=MAX_WAIT_SECONDS,
        ):
            with attempt:
                tries = attempt.num
                return Reply(provider.complete(request), None, tries - 1)
    except ProviderError as error:
        return Reply(None, error, tries - 1)
    raise AssertionError("unreachable")  # pragma: no cover - one try is always made


def _wait_before_retry(error: Exception) -> bool | float:
    """Whether to retry, or after how many seconds if the provider named a time."""
    if not isinstance(error, ProviderError) or not error.is_retryable:
        return False
    if error.retry_after_seconds is None:
        return True
    # A longer wait would block a worker; the attempt fails instead.
    return error.retry_after_seconds if error.retry_after_seconds <= MAX_WAIT_SECONDS else False


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`; None if it is absent or not a number of seconds."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    # The comparison is false for NaN, and excludes infinity.
    return seconds if 0 <= seconds < float("inf") else None


# Where a refusal says why: OpenAI, Anthropic and Google; then vLLM and Mistral, FastAPI, Ollama.
REASONS = (("error", "message"), ("message",), ("detail",), ("error",))
LONGEST_REASON_BYTES = 400
REQUEST_TIMEOUT = 408
SERVER_ERROR = 500
TOO_MANY = 429


def connect(sdk: ModuleType, owner: object, allows_private: bool) -> Any:  # noqa: ANN401 - the SDK's own
    """Return an HTTP client of an SDK: it follows no redirect, and is closed with its owner.

    Unless it `allows_private`, each request goes to an address that was found to be public.
    """
    hooks = {} if allows_private else {"request": [_pin]}
    client = sdk.DefaultHttpxClient(follow_redirects=False, event_hooks=hooks)
    finalize(owner, client.close)
    return client


def _pin(request: Any) -> None:  # noqa: ANN401 - the SDK's own
    """Send a request to the checked address of its host; ProviderError if it is not public."""
    if request.url.scheme in getproxies() and not proxy_bypass(request.url.host):
        return  # The proxy looks names up, and decides where they may lead.
    try:
        target = choose_target(str(request.url))
    except ForbiddenAddressError as error:
        # A name that is not found now may lead inside a moment later.
        is_known = isinstance(error, PrivateAddressError)
        raise (RefusedCallError if is_known else ProviderUnavailableError)(str(error)) from None
    request.url = request.url.copy_with(host=str(target.address))
    # Certificates are checked against the name, not the address.
    request.extensions = {**request.extensions, "sni_hostname": target.host}


def read_arguments(call: Any) -> str:  # noqa: ANN401 - an envelope
    """Return the arguments of a forced call as text; a text is kept as written."""
    arguments = call["function"]["arguments"]
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def translate_fault(sdk: ModuleType, error: Exception) -> ProviderError:
    """Return the ProviderError for an error of `sdk` (openai or anthropic)."""
    if isinstance(error.__cause__, ProviderError):
        return error.__cause__
    if isinstance(error, sdk.APITimeoutError):
        return CallTimeoutError("no answer in time")
    if isinstance(error, sdk.APIConnectionError):
        return ProviderUnavailableError("the provider cannot be reached")
    if isinstance(error, sdk.APIStatusError):
        return translate_answer(error.response)
    return RefusedCallError(f"the SDK gave up: {type(error).__name__}")


def translate_answer(response: httpx.Response) -> ProviderError:
    """Return the ProviderError for an HTTP error response, with its reason and Retry-After."""
    wait = read_retry_after(response.headers)
    message = f"the provider answered {response.status_code}"
    if response.is_redirect:
        # The host it names must not get the prompt and the key.
        message += ", a redirect, which is not followed: set the base URL to the final address"
    with suppress(ValueError):  # Often a page of a proxy.
        message = with_reason(message, response.json())
    if response.status_code == TOO_MANY:
        return RateLimitedError(message, retry_after_seconds=wait)
    if response.status_code == REQUEST_TIMEOUT or response.status_code >= SERVER_ERROR:
        return ProviderUnavailableError(message, retry_after_seconds=wait)
    return RefusedCallError(message)


def with_reason(message: str, body: object) -> str:
    """Return a message with the reason of a refusal, in its server's words, if it says one."""
    first = body[0] if isinstance(body, list) and body else body
    for path in REASONS:
        found = first
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, str) and found.strip():
            reason = redact(" ".join(clean_text(found).split()), LONGEST_REASON_BYTES)
            return f"{message}: {reason}"
    return message
