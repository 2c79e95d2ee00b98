"""The seam to a language model: one method, and the errors it may raise.

ProviderError
    CallTimeoutError        no answer within the attempt's time
    RateLimitedError        429: the provider asks us to wait
        NoCreditError       402, or a 429 for used-up credit: waiting does not help
    UnavailableError        connection, 408, 5xx: retry
    RefusedCallError        any other failure: a retry would fail too
        RefusedContentError 400, 413, 422: what is sent is refused, which says nothing of others
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from failsoft.events import CallErrorType
from failsoft.retry.policy import OutputMode
from failsoft.retry.prompts import ToolOffer

# What the columns of counts can hold.
MOST_TOKENS = 2**31 - 1
ANSWERERS = ("served_model", "upstream", "system_fingerprint")


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One call; `timeout_seconds` limits the wait for its answer.

    With `tools` the model has to call them, and the answer is in `tool_calls`.
    """

    model: str
    system: str
    user: str
    output_mode: OutputMode
    max_output_tokens: int
    temperature: float | None
    timeout_seconds: float
    schema_name: str = "answer"
    json_schema: dict[str, Any] = field(default_factory=dict)
    tools: tuple[ToolOffer, ...] = ()
    # Stream the answer; the whole answer is returned in any case.
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer; tokens are None if the provider did not report them.

    `served_model`, `upstream` (behind a gateway) and `system_fingerprint` say who answered.
    `tool_calls` are envelopes in OpenAI's format, not checked yet. Whatever else a server sends
    in place of a count or a name counts as not reported.
    """

    text: str
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    tool_calls: tuple[Any, ...] = ()
    reasoning_tokens: int | None = None
    served_model: str | None = None
    upstream: str | None = None
    system_fingerprint: str | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "reasoning_tokens"):
            count = getattr(self, name)
            if type(count) is not int or not 0 <= count <= MOST_TOKENS:
                object.__setattr__(self, name, None)
        for name in ("finish_reason", *ANSWERERS):
            if not isinstance(getattr(self, name), str):
                object.__setattr__(self, name, None)


class CompletionProvider(Protocol):
    def complete(self, request: CompletionRequest) -> Completion:
        """Call once, without retries; ProviderError if there is no answer."""
        ...


class ProviderError(Exception):
    """the provider gave no answer"""

    error_type: ClassVar[CallErrorType] = CallErrorType.PROVIDER_ERROR
    is_retryable: ClassVar[bool] = False
    usual_wait_seconds: ClassVar[float | None] = None

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds

    @property
    def wait_seconds(self) -> float | None:
        """Return how long a goal waits, as asked or as usual; None: waiting does not help."""
        if not self.is_retryable:
            return None
        asked = self.retry_after_seconds
        return self.usual_wait_seconds if asked is None else asked


class CallTimeoutError(ProviderError):
    """no answer within the attempt's time"""

    error_type = CallErrorType.TIMEOUT


class RateLimitedError(ProviderError):
    """the provider asks us to wait"""

    error_type = CallErrorType.RATE_LIMITED
    is_retryable = True
    # Most limits are of a minute, and part of it is over.
    usual_wait_seconds = 20.0


class NoCreditError(RateLimitedError):
    """the account's credit or quota is used up"""

    is_retryable = False


class ProviderUnavailableError(ProviderError):
    """the provider cannot be reached, or failed"""

    is_retryable = True


class RefusedCallError(ProviderError):
    """the provider refuses this call, or answers in a way that cannot be read"""


class RefusedContentError(RefusedCallError):
    """the provider refuses what this call sends, such as a prompt that is too long"""
