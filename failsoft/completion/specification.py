"""The specification of a completion check: the shape of `completion_check`.

A checker gets the id of its check. It answers with a document
`{"decision": "complete", "check_id": "<that id>", "reasons": [...], "fingerprints": [...]}`
in its decision file or its output; PASS, FAIL, COMPLETE and INCOMPLETE as text work too.
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
    """Return the components of a path; PathRefusedError when it is refused.

    Absolute paths, `..`, empty names, backslashes, drive letters and control characters
    are refused on every operating system.
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
# The field that each kind requires, and the kinds that allow each field.
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
    """One completion check: the checker, the place of its decision, and its limits."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["tool", "model", "command"]
    tool: Name | None = None
    args: dict[str, Any] = {}
    command: Name | None = None
    instructions: (
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_INSTRUCTIONS)] | None
    ) = None
    # Below the workspace of the loop; read first, and removed before each check.
    decision_file: str | None = None
    # Below FAILSOFT_WORKSPACE_DIR; by default each loop has a separate folder.
    workspace: str | None = None
    # A command is killed after this; tools and models have other limits.
    timeout_seconds: Annotated[int, Field(ge=1, le=500)] = 60
    # More consecutive undecidable checks than this fail the loop; 0 is off.
    undecidable_limit: Annotated[int, Field(ge=0, le=100)] = 3
    # A loop is stalled after this many checks with equal fingerprints; 0 is off.
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
                is_set = getattr(self, name) not in (None, {})
                if is_set:
                    raise field_error(name, "not_wanted", f"not for kind {self.kind}")
        return self

    @property
    def checker(self) -> str:
        """The name of the tool or command; empty for a model."""
        return self.tool or self.command or ""
