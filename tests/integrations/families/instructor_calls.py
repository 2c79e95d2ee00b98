"""instructor on the OpenAI SDK: it asks again by itself until the answer fits."""

import os

import instructor
from cell import MESSAGES, MODEL, Cell
from openai import OpenAI
from plan import Plan


def ask(cell: Cell) -> None:
    """Play a cell."""
    client = OpenAI(
        base_url=f"{cell.url}/v1", api_key="scripted", max_retries=0, timeout=cell.timeout
    )
    mode = instructor.Mode[os.environ["INSTRUCTOR_MODE"]]
    planner = instructor.from_openai(client, mode=mode)
    planner.chat.completions.create(
        model=MODEL, messages=MESSAGES, response_model=Plan, max_retries=cell.calls - 1
    )
