"""The OpenAI SDK under OpenInference; the version of the prompt is told by its own context."""

import openai_calls
from cell import PROMPT_VERSION, Cell, serve, set_up
from openinference.instrumentation import using_prompt_template
from openinference.instrumentation.openai import OpenAIInstrumentor

flush = set_up()
OpenAIInstrumentor().instrument()


def ask(cell: Cell) -> None:
    """Play a cell."""
    with using_prompt_template(template="{user}", version=PROMPT_VERSION):
        openai_calls.ask(cell)


serve(ask, flush)
