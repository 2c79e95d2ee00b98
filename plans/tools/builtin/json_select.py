"""`json_select`: take one value out of a JSON value, by JSON pointer (RFC 6901)."""

import re

from pydantic import BaseModel, Field, JsonValue

from plans.tools.registry import tool

_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,6})\Z")


class JsonSelectArgs(BaseModel):
    """Where to look, and for what."""

    value: JsonValue = Field(description="The JSON value to look into.")
    pointer: str = Field(default="", description="JSON pointer, such as /items/0/name.")


@tool(
    "json_select",
    JsonSelectArgs,
    description="Return the part of a JSON value that a JSON pointer names.",
)
def json_select(args: JsonSelectArgs) -> dict[str, JsonValue]:
    """Return the value the pointer leads to; ValueError when it leads nowhere."""
    if args.pointer and not args.pointer.startswith("/"):
        raise ValueError("a pointer is empty or begins with /")
    value = args.value
    for part in args.pointer.split("/")[1:]:
        value = _enter(value, part.replace("~1", "/").replace("~0", "~"))
    return {"value": value}


def _enter(value: JsonValue, key: str) -> JsonValue:
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) and _INDEX.match(key) and int(key) < len(value):
        return value[int(key)]
    raise ValueError(f"there is nothing at {key[:80]!r}")
