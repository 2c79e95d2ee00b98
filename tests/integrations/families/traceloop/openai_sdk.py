"""Traceloop's instrumentation of openai."""

import openai_calls
from cell import serve, set_up
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

flush = set_up()
OpenAIInstrumentor().instrument()
serve(openai_calls.ask, flush)
