"""Why a call failed, wherever its client writes it."""

import pytest

from diagnostics.ingest.otlp.call_errors import CallError, read_error
from diagnostics.ingest.otlp.telemetry import SpanEvent

WRAPPED_LIMIT = "openai.RateLimitError: Error code: 429 - busy"
TIMEOUT, LIMITED, OTHER = "timeout", "rate_limited", "provider_error"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CallError("openai.APITimeoutError"), TIMEOUT),
        (CallError("429"), LIMITED),
        (CallError("Exception", "429"), LIMITED),
        # Texts of SDKs and frameworks, where the name says nothing.
        (CallError(None, None, ("Error getting response: Error code: 429 - {'x': 1}",)), LIMITED),
        (CallError("Exception", None, ("RateLimitError('Error code: 429')",)), LIMITED),
        (CallError("Exception", None, ("Request timed out.",)), TIMEOUT),
        (CallError("ServiceResponseException", None, ("429 Too Many Requests",)), LIMITED),
        (CallError(None, None, ("DEADLINE_EXCEEDED: 4.5 s",)), TIMEOUT),
        (CallError(None, None, ("HTTP/1.1 504 Gateway Time-out",)), TIMEOUT),
        (CallError("AI_APICallError", None, ("Rate limit reached for gpt-4o",)), LIMITED),
        (CallError("Error: 429 scripted", None, ("Error: 429 scripted",)), LIMITED),
        # A status decides before words, a telling name before a status.
        (CallError(None, None, ("Error code: 500 - upstream timed out",)), OTHER),
        (CallError("TimeoutError", "500"), TIMEOUT),
        (CallError("RuntimeError", None, ("boom", "status_code: 429")), LIMITED),
        # Frameworks wrap the SDK's error in one of their own, whose text says less.
        (CallError("agno.ModelProviderError", None, ("scripted",), (WRAPPED_LIMIT,)), LIMITED),
        (CallError("ProviderError", None, ("failed",), ("httpx.ReadTimeout: read",)), TIMEOUT),
        (CallError("ProviderError", None, ("status 500",), (WRAPPED_LIMIT,)), OTHER),
        # Numbers that are no status.
        (CallError(None, None, ("max_tokens must be below 429",)), OTHER),
        (CallError(), OTHER),
    ],
)
def test_the_kind_of_an_error_is_found(error: CallError, kind: str) -> None:
    assert error.kind == kind


@pytest.mark.parametrize(
    ("texts", "is_cancelled"),
    [
        (("CancelledError()",), True),
        (("asyncio.exceptions.CancelledError: Cancelled by cancel scope",), True),
        (("GeneratorExit()",), True),
        (("context canceled",), True),
        # Go wraps what happened, and names it last.
        (('Post "https://api.example.org/v1": context canceled',), True),
        # A message and its stack, as LangChain for Node joins them.
        (("Request was aborted.\n\nAbortError: Request was aborted.\n    at call",), True),
        (("APIError: the task was cancelled by the server",), False),
        ((), False),
    ],
)
def test_a_text_that_begins_with_a_cancel_is_one(
    texts: tuple[str, ...], is_cancelled: bool
) -> None:
    assert CallError("Exception", None, texts).is_cancelled(None) is is_cancelled


def test_a_parse_error_in_a_text_is_one() -> None:
    assert CallError(None, None, ("ValidationError: 2 errors",)).parse_error == "schema_invalid"
    assert CallError("ValueError", None, ("bad ValidationError",)).parse_error is None
    assert CallError("MaxTokensError").parse_error == "truncated"
    assert CallError("ZodError").parse_error == "schema_invalid"


def test_parse_errors_are_known_by_their_names_in_any_language() -> None:
    names = ("com.fasterxml.jackson.core.JsonParseException", "System.Text.Json.JsonException")
    for name in (*names, "JSON::ParserError", "kotlinx.serialization.json.JsonDecodingException"):
        assert CallError(name).parse_error == "not_json"
    assert CallError(None, None, ("JSON::ParserError: unexpected",)).parse_error == "not_json"
    name = "com.fasterxml.jackson.databind.exc.MismatchedInputException"
    assert CallError(name).parse_error == "schema_invalid"


@pytest.mark.parametrize(
    ("text", "parse_error"),
    [
        ("Unexpected token 'S', \"Sure! Go\" is not valid JSON", "not_json"),
        ("SyntaxError: Unexpected end of JSON input", "not_json"),
        ('JSON Parse error: Unexpected identifier "Sure"', "not_json"),
        ("Failed to parse structured output as JSON. Content: Sure!", "not_json"),
        ("The model failed to satisfy the schema given in the format.", "schema_invalid"),
        ("A call was required, but no tool calls were generated.", "schema_invalid"),
        ("invalid character 'S' looking for beginning of value", "not_json"),  # Go
        ("json: cannot unmarshal string into Go struct field Trip.days", "schema_invalid"),
        ("expected value at line 1 column 1", "not_json"),  # Rust
        # The page of a proxy is no answer of a model.
        ("invalid character '<' looking for beginning of value", None),
        ("Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON", None),
        ("Invalid JSON response", None),
    ],
)
def test_a_client_says_in_words_that_it_cannot_read_an_answer(
    text: str, parse_error: str | None
) -> None:
    assert CallError("Error", None, (text,)).parse_error == parse_error


@pytest.mark.parametrize("code", ["tool_use_failed", "json_validate_failed"])
def test_an_answer_that_a_server_holds_back_is_a_parse_error(code: str) -> None:
    body = {"message": "See 'failed_generation'.", "code": code, "failed_generation": "{"}
    texts = (f"Error code: 400 - {{'error': {body}}}", f"status_code: 400, body: {body}")
    for text in texts:
        assert CallError("BadRequestError", "400", (text,)).parse_error == "schema_invalid"
    refused = CallError("BadRequestError", "400", ("Error code: 400 - {'code': 'no_such_model'}",))
    assert refused.parse_error is None


def test_all_that_is_reported_is_read() -> None:
    events = [
        SpanEvent("exception", {"exception.type": "A", "exception.message": "first"}),
        SpanEvent("exception", {"exception.type": "Exception", "exception.message": "timed out"}),
    ]
    error = read_error({"error.type": "_OTHER"}, events, "failed")
    assert error == CallError("Exception", None, ("first", "timed out", "failed"))
    assert error.kind == TIMEOUT
    assert read_error({"http.response.status_code": 503}, (), "") == CallError("503", "503")
    assert read_error({"http.response.status_code": 200}, (), "") == CallError()


def test_the_causes_of_an_exception_are_read_from_its_stack_trace() -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "chat.py", line 419, in invoke\n'
        "    raise self._error(response)\n"
        "openai.RateLimitError: Error code: 429 - busy\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        "  a.LocalError: in the code\n"
        "agno.exceptions.ModelProviderError: busy\n"
    )
    event = SpanEvent("exception", {"exception.type": "X", "exception.stacktrace": trace})
    error = read_error({}, [event], "")
    assert error.causes == (WRAPPED_LIMIT, "agno.exceptions.ModelProviderError: busy")
    assert error.kind == "rate_limited"


def test_an_exception_that_led_to_another_is_no_cancel() -> None:
    error = CallError("ProviderError", None, ("late",), ("asyncio.CancelledError",))
    assert not error.is_cancelled(None)
