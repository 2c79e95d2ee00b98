"""`sleep`: wait a little."""

import time
from typing import Annotated

from pydantic import BaseModel, Field

from plans.tools.registry import tool

MAX_SECONDS = 30.0


class SleepArgs(BaseModel):
    """How long."""

    seconds: Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)] = 1.0


@tool("sleep", SleepArgs, description="Wait for a number of seconds, at most 30.")
def sleep(args: SleepArgs) -> dict[str, float]:
    """Wait, and say how long."""
    time.sleep(args.seconds)
    return {"slept_seconds": args.seconds}
