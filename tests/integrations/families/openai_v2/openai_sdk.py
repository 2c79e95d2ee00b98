"""The OpenAI SDK under OpenTelemetry's own instrumentation."""

import openai_calls
from cell import serve, set_up
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

flush = set_up()
OpenAIInstrumentor().instrument()
serve(openai_calls.ask, flush)
