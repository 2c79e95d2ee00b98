"""`fail`: always raises, to try out how failures travel. Never offered to planners."""

from typing import NoReturn

from pydantic import BaseModel, ConfigDict

from plans.tools.registry import tool


class FailedOnPurposeError(Exception):
    """The tool was asked to fail."""


class FailArgs(BaseModel):
    """What to say; anything else is ignored."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    message: str = "failed on purpose"


@tool("fail", FailArgs, description="Always fail.", offered=False)
def fail(args: FailArgs) -> NoReturn:
    """Raise with the message."""
    raise FailedOnPurposeError(args.message)
