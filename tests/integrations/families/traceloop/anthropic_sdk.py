"""Traceloop's instrumentation of anthropic."""

import anthropic_calls
from cell import serve, set_up
from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

flush = set_up()
AnthropicInstrumentor().instrument()
serve(anthropic_calls.ask, flush)
