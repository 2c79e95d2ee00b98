"""The plan as a model of pydantic."""

from pydantic import BaseModel


class Step(BaseModel):
    """One step."""

    tool: str


class Plan(BaseModel):
    """What the agent will do."""

    title: str
    steps: list[Step]
