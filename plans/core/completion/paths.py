"""Which paths may name a decision file or a workspace: plain names below one folder."""

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
