"""What kind of fault ended a call: the provider's, or an answer that could not be read."""

from collections.abc import Iterable

from diagnostics.core.events import CallErrorType, ParseErrorType
from diagnostics.core.otlp.picking import Bag, count, short
from diagnostics.core.otlp.telemetry import SpanEvent

OTHER = "_OTHER"
# Raised by clients after the model has answered.
PARSE_ERRORS = {
    "JSONDecodeError": ParseErrorType.NOT_JSON,
    "ValidationError": ParseErrorType.SCHEMA_INVALID,
    "LengthFinishReasonError": ParseErrorType.TRUNCATED,
    "IncompleteOutputException": ParseErrorType.TRUNCATED,
    "ContentFilterFinishReasonError": ParseErrorType.REFUSAL,
}
TIMEOUTS = ("timeout", "timed_out", "timedout", "deadline")
LIMITS = ("ratelimit", "rate_limit", "resourceexhausted", "throttl", "toomanyrequests")
BREAKERS = ("circuitbreaker", "circuit_open", "breakeropen")
CODES = {
    "408": CallErrorType.TIMEOUT,
    "504": CallErrorType.TIMEOUT,
    "429": CallErrorType.RATE_LIMITED,
}


def error_of(bag: Bag, events: Iterable[SpanEvent]) -> str | None:
    """Name the error of a call: `error.type`, else the last exception, else the HTTP status."""
    told = short(bag, "error.type")
    if told is not None and told != OTHER:
        return told
    raised = [
        name
        for event in events
        if event.name == "exception" and (name := short(event.attributes, "exception.type"))
    ]
    if raised:
        return raised[-1]
    status = count(bag, "http.response.status_code")
    return str(status) if status is not None and status >= 400 else told


def call_error(name: str | None) -> CallErrorType:
    """Say why a call gave no answer, from the name of its error."""
    told = (name or "").lower()
    if told in CODES:
        return CODES[told]
    if any(part in told for part in TIMEOUTS):
        return CallErrorType.TIMEOUT
    if any(part in told for part in LIMITS):
        return CallErrorType.RATE_LIMITED
    if any(part in told for part in BREAKERS):
        return CallErrorType.CIRCUIT_OPEN
    return CallErrorType.PROVIDER_ERROR


def parse_error(name: str | None) -> ParseErrorType | None:
    """Say which parse failure an error is; None for one of the call itself."""
    return PARSE_ERRORS.get((name or "").rpartition(".")[2])
