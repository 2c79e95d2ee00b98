"""LangChain under OpenInference."""

import langchain_calls
from cell import serve, set_up
from openinference.instrumentation.langchain import LangChainInstrumentor

flush = set_up()
LangChainInstrumentor().instrument()
serve(langchain_calls.ask, flush)
