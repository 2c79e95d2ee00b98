"""JSON pointers (RFC 6901)."""

from collections.abc import Iterable


def escape_pointer(key: str) -> str:
    """One segment of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def pointer_of(path: Iterable[object]) -> str:
    """A JSON pointer from the segments of a pydantic `loc`."""
    return "".join(f"/{escape_pointer(str(segment))}" for segment in path)
