"""What is wrong with a posted event, said with pointers and without its values."""

from collections.abc import Mapping, Sequence
from typing import Any

from diagnostics.core.events import MAX_ERRORS


def describe_errors(errors: list[Any]) -> list[dict[str, str]]:
    """Turn pydantic's error list into `{path, code, message}` with JSON pointers.

    Messages never contain the refused value; unknown keys are named in the pointer.
    """
    described = [_describe(error) for error in errors[:MAX_ERRORS]]
    # A value of a union fails once for each of its types.
    return list({(d["path"], d["code"]): d for d in described}.values())


def _describe(error: Mapping[str, Any]) -> dict[str, str]:
    context = error.get("ctx") or {}
    location: Sequence[Any] = (context["field"],) if "field" in context else error["loc"]
    if len(location) > 2 and location[0] == "attributes":
        return _describe_attribute(location[1], is_key=location[2] == "[key]")
    return {
        "path": "".join(f"/{_escape_pointer(str(part))}" for part in location),
        "code": str(error["type"]),
        "message": str(error["msg"]),
    }


def _describe_attribute(name: str, *, is_key: bool) -> dict[str, str]:
    message = (
        "a name of 1 to 200 characters"
        if is_key
        else "a text of at most 4096 characters, a finite number or a boolean"
    )
    path = f"/attributes/{_escape_pointer(name)}"
    return {"path": path, "code": "attribute", "message": message}


def _escape_pointer(part: str) -> str:
    return part[:200].replace("~", "~0").replace("/", "~1")
