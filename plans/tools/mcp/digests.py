"""When two descriptions of a tool are the same."""

import json

from mcp import types as mcp_types

from plans.core.mcp_servers import digest_of


def digest_of_tool(tool: mcp_types.Tool) -> str:
    """Return the digest of a tool's name, arguments and hints; its prose may change."""
    hints = tool.annotations.model_dump() if tool.annotations else {}
    known = [tool.name, tool.input_schema, hints]
    return digest_of(json.dumps(known, sort_keys=True, ensure_ascii=True))
