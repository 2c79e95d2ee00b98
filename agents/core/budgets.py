"""What a goal may spend over all its cycles: calls, tokens and seconds (S28)."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Budget(BaseModel):
    """Hard ceilings of one goal; seconds are wall time since a worker took it up.

    Waiting for a person's answer and for a worker to go on is not counted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    calls: Annotated[int, Field(ge=1, le=100)] = 10
    tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000
    seconds: Annotated[int, Field(ge=1, le=86_400)] = 300


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used so far; tokens nobody reported count as none."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


def spent_dimension(budget: Budget, spent: Spent) -> str | None:
    """The name of the first ceiling that is reached, or None while there is room for a call."""
    if spent.calls >= budget.calls:
        return "calls"
    if spent.tokens >= budget.tokens:
        return "tokens"
    if spent.seconds >= budget.seconds:
        return "seconds"
    return None
