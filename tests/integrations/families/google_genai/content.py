"""Google's SDK under OpenInference."""

from cell import MODEL, USER, Cell, ask_until_plan, serve, set_up
from google import genai
from google.genai import types
from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor
from schema import PLAN

flush = set_up()
GoogleGenAIInstrumentor().instrument()
TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name="Plan", description="Plan.", parameters_json_schema=PLAN)
    ]
)


def ask(cell: Cell) -> None:
    """Play a cell."""
    options = types.HttpOptions(base_url=cell.url, timeout=int(cell.timeout * 1000))
    client = genai.Client(api_key="scripted", http_options=options)
    config = types.GenerateContentConfig(tools=[TOOL] if cell.tools else None)

    def call() -> str | None:
        if cell.stream:
            pieces = client.models.generate_content_stream(
                model=MODEL, contents=USER, config=config
            )
            return "".join(piece.text or "" for piece in pieces)
        answer = client.models.generate_content(model=MODEL, contents=USER, config=config)
        return answer.text

    ask_until_plan(cell, call)


serve(ask, flush)
