"""Traceloop's instrumentation of langchain."""

import langgraph_calls
from cell import serve, set_up
from opentelemetry.instrumentation.langchain import LangchainInstrumentor

flush = set_up()
LangchainInstrumentor().instrument()
serve(langgraph_calls.ask, flush)
