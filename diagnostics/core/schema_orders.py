"""What is sent to register a schema of a node: `{"json_schema", "version"}`."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

NODE = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)


class SchemaOrder(BaseModel):
    """A JSON Schema (draft 2020-12) and, unless numbers are to be given, its version."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    json_schema: Any = Field(json_schema_extra={"type": ["object", "boolean"]})
    version: str | None = Field(default=None, min_length=1, max_length=200, pattern="^[^\\x00]+$")


def is_node(name: str) -> bool:
    """Say whether a node can have this name."""
    return NODE.fullmatch(name) is not None
