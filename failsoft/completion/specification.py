"""How a loop's completion is checked: the shape of `completion_check`.

A checker is told its check id by value. It answers with a document
`{"decision": "complete", "check_id": "<that id>", "reasons": [...], "fingerprints": [...]}`
in its decision file or its output; PASS, FAIL, COMPLETE and INCOMPLETE as text are read too.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from failsoft.events import field_error

MAX_PARTS = 10
MAX_CHARACTERS = 400


class PathRefusedError(ValueError):
    """the path leads, or could lead, out of its folder"""


def read_relative_path(text: str) -> tuple[str, ...]:
    """Return the names of a path; PathRefusedError says what is wrong with it.

    Absolute paths, `..`, empty names, backslashes, drive letters and control characters
    are refused, on every system alike.
    """
    if not text or len(text) > MAX_CHARACTERS:
        raise PathRefusedError(f"expected a path of 1 to {MAX_CHARACTERS} characters")
    if text.startswith(("/", "~")) or ":" in text or "\\" in text:
        raise PathRefusedError("expected a path below the workspace, with / between")
    if not text.isprintable():
        raise PathRefusedError("expected no control characters")
    parts = tuple(text.split("/"))
    if len(parts) > MAX_PARTS:
        raise PathRefusedError(f"expected at most {MAX_PARTS} names")
    if any(part in ("", ".", "..") for part in parts):
        raise PathRefusedError("expected neither empty names nor . or ..")
    return parts


MAX_INSTRUCTIONS = 8_000
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
# What a kind needs, and what it has no use for.
_NEEDS = {"tool": "tool", "command": "command", "model": None}
_OF_KIND = {
    "tool": ("tool",),
    "args": ("tool",),
    "command": ("command",),
    "timeout_seconds": ("command",),
    "instructions": ("model",),
    "decision_file": ("tool", "command"),
    "workspace": ("tool", "command"),
}


class CheckSpec(BaseModel):
    """One completion check: who decides, where the decision is looked for, how often."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["tool", "model", "command"]
    tool: Name | None = None
    args: dict[str, Any] = {}
    command: Name | None = None
    instructions: (
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_INSTRUCTIONS)] | None
    ) = None
    # Below the loop's workspace; read first, and cleared before each check.
    decision_file: str | None = None
    # Below FAILSOFT_WORKSPACE_DIR; without one a loop has a folder of its own.
    workspace: str | None = None
    # A command is killed after this; a tool and a model have limits of their own.
    timeout_seconds: Annotated[int, Field(ge=1, le=500)] = 60
    # More undecidable checks in a row than this fail the loop; 0 never does.
    undecidable_limit: Annotated[int, Field(ge=0, le=100)] = 3
    # So many times the same fingerprints in a row is a loop that does not move; 0 is off.
    stalled_after: Annotated[int, Field(ge=0, le=100)] = 3
    on_stalled: Literal["continue", "abort"] = "continue"
    on_exhausted: Literal["abort", "continue"] = "abort"

    @field_validator("decision_file", "workspace")
    @classmethod
    def _stays_inside(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            read_relative_path(value)
        except PathRefusedError as error:
            raise PydanticCustomError("path_refused", str(error)) from None
        return value

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        needed = _NEEDS[self.kind]
        if needed is not None and getattr(self, needed) is None:
            raise field_error(needed, "missing", f"kind {self.kind} names its {needed}")
        for name, kinds in _OF_KIND.items():
            if name in self.model_fields_set and self.kind not in kinds:
                is_given = getattr(self, name) not in (None, {})
                if is_given:
                    raise field_error(name, "not_wanted", f"not for kind {self.kind}")
        return self

    @property
    def checker(self) -> str:
        """The name of the tool or command; empty for a model."""
        return self.tool or self.command or ""
