"""Traceloop's instrumentation of langchain."""

import langchain_calls
from cell import serve, set_up
from opentelemetry.instrumentation.langchain import LangchainInstrumentor

flush = set_up()
LangchainInstrumentor().instrument()
serve(langchain_calls.ask, flush)
