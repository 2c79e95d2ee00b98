"""The Anthropic SDK, which traces itself, under OpenInference."""

import anthropic_calls
from cell import serve, set_up
from openinference.instrumentation.anthropic import AnthropicInstrumentor

flush = set_up()
AnthropicInstrumentor().instrument()
serve(anthropic_calls.ask, flush)
