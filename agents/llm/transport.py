"""Transport retries, which are not attempts: at most two, never after an answer."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from time import monotonic
from types import ModuleType
from typing import Any, TypeVar
from urllib.request import getproxies, proxy_bypass
from weakref import finalize

import httpx
import stamina

from agents.llm.provider import (
    CallTimeoutError,
    Completion,
    CompletionProvider,
    CompletionRequest,
    NoCreditError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedCallError,
    RefusedContentError,
)
from diagnostics.outbound.addresses import ForbiddenAddressError, PrivateAddressError, choose_target
from diagnostics.outbound.retry_after import find_retry_after, read_retry_after
from diagnostics.redaction.redactor import redact
from failsoft.json_values import clean_text

T = TypeVar("T")
MAX_RETRIES = 2
MAX_WAIT_SECONDS = 5.0
FIRST_WAIT_SECONDS = 0.2
# Unpacked. Above what the longest stream of a model has: a limit for what means harm.
MAX_ANSWER_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer or the error of a call, and how often it was retried."""

    answer: Completion | ProviderError
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
                return Reply(provider.complete(request), tries - 1)
    except ProviderError as error:
        return Reply(error, tries - 1)
    raise AssertionError("unreachable")  # pragma: no cover - one try is always made


def _wait_before_retry(error: Exception) -> bool | float:
    """Whether to retry, or after how many seconds if the provider named a time."""
    if not isinstance(error, ProviderError) or not error.is_retryable:
        return False
    if error.retry_after_seconds is None:
        return True
    # A longer wait would block a worker; the attempt fails instead.
    return error.retry_after_seconds if error.retry_after_seconds <= MAX_WAIT_SECONDS else False


# Where a refusal says why: OpenRouter, of the provider behind it; OpenAI and Google; Anthropic,
# in a stream; vLLM and Mistral; FastAPI; Ollama.
REASONS = (
    ("error", "metadata", "raw"),
    ("error", "message"),
    ("error", "error", "message"),
    ("message",),
    ("detail",),
    ("error",),
)
LONGEST_REASON_BYTES = 400
# A parameter of either API.
CHOICE = "tool_choice"
REFUSED_CONTENT = {400, 413, 422}
# A 429 of these codes or types is not about the rate: OpenAI, Moonshot, Zhipu.
USED_UP = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "exceeded_current_quota_error",
    "1113",
}
# Of errors within an answer, which has no status of its own.
STATUSES = {
    "billing_error": HTTPStatus.PAYMENT_REQUIRED,
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "rate_limit_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
}


def connect(sdk: ModuleType, owner: object, allows_private: bool) -> Any:  # noqa: ANN401 - the SDK's own
    """Return an HTTP client of an SDK: it follows no redirect, and is closed with its owner.

    It reads at most 64 MiB of an answer, within the timeout. Unless it `allows_private`, each
    request goes to an address that was found to be public.
    """
    hooks = {"response": [_bound]} | ({} if allows_private else {"request": [_pin]})
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


def _bound(response: Any) -> None:  # noqa: ANN401 - the SDK's own
    """Bound the bytes of an answer and, as the SDKs read errors by themselves, its time.

    Counted is what it unpacks to: a megabyte of gzip may hold a thousand. The SDKs' timeout is
    that of each piece.
    """
    unpack = response.iter_bytes
    end = monotonic() + response.request.extensions["timeout"]["read"]

    def iter_bounded(chunk_size: int | None = None) -> Iterator[bytes]:
        size = 0
        for chunk in unpack(chunk_size):
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise RefusedCallError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
            if monotonic() > end:
                raise CallTimeoutError("no whole answer in time")
            yield chunk

    response.iter_bytes = iter_bounded


def read_arguments(call: Any) -> str:  # noqa: ANN401 - an envelope
    """Return the arguments of a forced call as text; a text is kept as written."""
    arguments = call["function"]["arguments"]
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def send_forced(
    sdk: ModuleType, send: Callable[[dict[str, Any]], T], body: dict[str, Any], choice: object
) -> T:
    """Send a request; if the forced call of a tool is refused, with this choice instead.

    A model that thinks by default may not be forced to call, nor LM Studio's to call one tool by
    its name. The prompt asks for the call in any case.
    """
    try:
        return send(body)
    except sdk.APIStatusError as error:
        if error.status_code not in REFUSED_CONTENT or CHOICE not in body:
            raise
        if CHOICE not in error.response.text:
            raise
    return send({**body, CHOICE: choice})


def seconds_until(deadline: float) -> float:
    """Return the seconds until a time of `time.monotonic`, more than 0."""
    return max(0.001, deadline - monotonic())


def translate_fault(sdk: ModuleType, error: Exception) -> ProviderError:
    """Return the ProviderError for an error of `sdk` (openai or anthropic)."""
    if isinstance(error.__cause__, ProviderError):
        return error.__cause__
    if isinstance(error, sdk.APITimeoutError):
        return CallTimeoutError("no answer in time")
    if isinstance(error, sdk.APIConnectionError):
        return ProviderUnavailableError("the provider cannot be reached")
    if isinstance(error, sdk.APIStatusError) and not error.response.is_success:
        return _translate_response(error.response)
    if isinstance(error, sdk.APIError):
        return translate_error("the stream ended in an error", {"error": error.body})
    return RefusedCallError(f"the SDK gave up: {type(error).__name__}")


def _translate_response(response: httpx.Response) -> ProviderError:
    message = f"the provider answered {response.status_code}"
    if response.is_redirect:
        # The host it names must not get the prompt and the key.
        message += ", a redirect, which is not followed: set the base URL to the final address"
    elif response.status_code == HTTPStatus.NOT_FOUND:
        message += " (a wrong model or base URL)"
    body = None
    with suppress(ValueError):  # Often a page of a proxy.
        body = response.json()
    asked = find_retry_after(response.headers, response.content)
    wait = read_retry_after(asked, datetime.now(UTC))
    seconds = None if wait is None else wait.total_seconds()
    return _fault_of(response.status_code, with_reason(message, body), body, seconds)


def translate_error(message: str, body: Mapping[str, Any]) -> ProviderError:
    """Return the ProviderError for an answer that is or has an error, in place of a status."""
    error = error_in(body)
    names = [str(error.get(key)) for key in ("code", "type")]
    known = [int(STATUSES[name]) for name in names if name in STATUSES]
    given = [int(name) for name in names if re.fullmatch("[45][0-9]{2}", name)]
    has_error = bool(body.get("error"))
    otherwise = HTTPStatus.SERVICE_UNAVAILABLE if has_error else HTTPStatus.NOT_FOUND
    status = next(iter(known + given), int(otherwise))
    return _fault_of(status, with_reason(message, body), body, None)


def _fault_of(status: int, message: str, body: object, wait: float | None) -> ProviderError:
    error = error_in(body)
    is_used_up = any(str(error.get(key)) in USED_UP for key in ("code", "type"))
    is_too_often = status == HTTPStatus.TOO_MANY_REQUESTS
    if status == HTTPStatus.PAYMENT_REQUIRED or (is_too_often and is_used_up):
        return NoCreditError(message)
    if is_too_often:
        return RateLimitedError(message, retry_after_seconds=wait)
    if status == HTTPStatus.REQUEST_TIMEOUT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ProviderUnavailableError(message, retry_after_seconds=wait)
    return (RefusedContentError if status in REFUSED_CONTENT else RefusedCallError)(message)


def error_in(body: object) -> Mapping[str, Any]:
    """Return the innermost error that a body is or has; Google sends a list, Anthropic nests."""
    first = body[0] if isinstance(body, list) and body else body
    error: dict[str, Any] = first if isinstance(first, dict) else {}
    while isinstance(inner := error.get("error"), dict):
        error = inner
    return error


def with_reason(message: str, body: object) -> str:
    """Return a message with the reason of a refusal, in its server's words, if it says one."""
    first = body[0] if isinstance(body, list) and body else body
    for path in REASONS:
        found = first
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if found and found is not True:
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
            reason = redact(" ".join(clean_text(text).split()), LONGEST_REASON_BYTES)
            return f"{message}: {reason}"
    return message
