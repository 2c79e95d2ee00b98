"""`template`: put values into a text, by name and nothing more."""

import json
import re
from collections.abc import Iterator

from pydantic import BaseModel, Field, JsonValue

from plans.tools.registry import tool

# `$$`, `$name` or `${name}`; anything else that begins with `$` is ordinary text.
_PLACE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_MAX_CHARACTERS = 64 * 1024


class TemplateArgs(BaseModel):
    """A text with `$name` or `${name}` in it, and the values to put there."""

    template: str = Field(description="Text with $name or ${name} where values go.")
    values: dict[str, JsonValue] = Field(default={}, description="Values by name.")


@tool(
    "template",
    TemplateArgs,
    description="Fill $name places of a text with values; names without one stay.",
)
def template(args: TemplateArgs) -> dict[str, str]:
    """Return the filled text.

    Substituted values are not looked at again, and nothing is evaluated (S29).
    """
    written: list[str] = []
    left = _MAX_CHARACTERS
    for part in _parts(args):
        left -= len(part)
        # Checked while it grows: a few places and one long value make gigabytes.
        if left < 0:
            raise ValueError(f"the text would have more than {_MAX_CHARACTERS} characters")
        written.append(part)
    return {"text": "".join(written)}


def _parts(args: TemplateArgs) -> Iterator[str]:
    end = 0
    for place in _PLACE.finditer(args.template):
        yield args.template[end : place.start()]
        yield _fill(place, args.values)
        end = place.end()
    yield args.template[end:]


def _fill(place: re.Match[str], values: dict[str, JsonValue]) -> str:
    if place[1]:
        return "$"
    name = place[2] or place[3]
    if name not in values:
        return place[0]
    value = values[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
