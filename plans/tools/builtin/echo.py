"""`echo`: return the arguments."""

from pydantic import BaseModel, ConfigDict, JsonValue

from plans.tools.registry import tool


class EchoArgs(BaseModel):
    """Anything, or nothing."""

    model_config = ConfigDict(extra="allow")


@tool("echo", EchoArgs, description="Return the arguments unchanged.")
def echo(args: EchoArgs) -> dict[str, JsonValue]:
    """Return the arguments as they came."""
    return dict(args.model_extra or {})
