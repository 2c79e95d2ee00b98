"""What a server answered to a call, as the output of a step."""

from collections.abc import Iterable
from typing import Any

from mcp import types as mcp_types
from pydantic import JsonValue

# The executor bounds outputs too; this keeps a huge answer from being copied first.
_MAX_TEXT = 1024 * 1024


def output_of(result: mcp_types.CallToolResult) -> dict[str, JsonValue]:
    """Return the texts as one, the structured content, and what else there was.

    Pictures, sounds and files are named by kind, media type and size; their bytes are
    not kept.
    """
    return {
        "text": text_of(result.content),
        "structured": result.structured_content,
        "attachments": [_describe(item) for item in _others(result.content)],
    }


def text_of(content: Iterable[mcp_types.ContentBlock]) -> str:
    """Return all texts of an answer, a line apart."""
    texts = [item.text for item in content if isinstance(item, mcp_types.TextContent)]
    return "\n".join(texts)[: _MAX_TEXT + 1]


def _others(content: Iterable[mcp_types.ContentBlock]) -> list[Any]:
    return [item for item in content if not isinstance(item, mcp_types.TextContent)]


def _describe(item: Any) -> JsonValue:  # noqa: ANN401 - a union of the SDK
    held = getattr(item, "resource", item)
    encoded = getattr(held, "data", None) or getattr(held, "blob", None) or ""
    text = getattr(held, "text", None)
    uri = getattr(held, "uri", None)
    return {
        "type": str(item.type),
        "media_type": getattr(held, "mime_type", None),
        "bytes": len(encoded) * 3 // 4 if text is None else len(text),
        "uri": None if uri is None else str(uri)[:2_000],
    }
