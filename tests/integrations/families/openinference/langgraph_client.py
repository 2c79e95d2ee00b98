"""LangGraph under OpenInference's instrumentation of LangChain."""

import langgraph_calls
from cell import serve, set_up
from openinference.instrumentation.langchain import LangChainInstrumentor

flush = set_up()
LangChainInstrumentor().instrument()
serve(langgraph_calls.ask, flush)
