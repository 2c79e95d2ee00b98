"""Retries of the transport, beside the ladder: at most two, never for an answer (X-2)."""

from dataclasses import dataclass

import stamina

from agents.providers.base import Completion, CompletionRequest, Provider, ProviderError

MAX_RETRIES = 2
MAX_WAIT_SECONDS = 5.0
FIRST_WAIT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call ended in, answer or error, and how often it was sent again."""

    completion: Completion | None
    error: ProviderError | None
    retries: int
    # False when there was no provider to send it to.
    was_sent: bool = True


def call(
    provider: Provider, request: CompletionRequest, *, max_retries: int = MAX_RETRIES
) -> Reply:
    """Ask once, and again only after a fault of the transport; never raises ProviderError."""
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
    """Say whether to ask again, and when the provider named a short enough time, after how long."""
    if not isinstance(error, ProviderError) or not error.is_retryable:
        return False
    if error.retry_after_seconds is None:
        return True
    # A longer wait would hold a worker; the attempt fails instead.
    return error.retry_after_seconds if error.retry_after_seconds <= MAX_WAIT_SECONDS else False
