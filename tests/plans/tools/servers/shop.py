"""A server that works: over stdio, or as `shop.py PORT` over HTTP. FAULTS is its log."""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import Field

READS = ToolAnnotations(read_only_hint=True)
shop = MCPServer("shop", version="7")
if os.environ.get("SHOP_NEW"):

    @shop.tool(annotations=READS)
    def add(first: int, second: int) -> int:
        """Add two numbers."""
        return first + second

else:

    @shop.tool(name="add", annotations=READS)
    def old_add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b


@shop.tool(annotations=READS)
def tell_key(context: Context) -> str:
    """Say which idempotency key came with the call."""
    meta = context.request_context.meta or {}
    return str(dict(meta).get("failsoft/idempotency-key"))


@shop.tool(name="say secret", annotations=READS)
def say_secret() -> str:
    """Say what the environment holds."""
    inherited = [name for name in os.environ if name.startswith("FAILSOFT_")]
    return f"{os.environ.get('SHOP_TOKEN')} {inherited}"


@shop.tool()
def refuse() -> str:
    """Fail, and say why."""
    raise ToolError("no such customer")


@shop.tool()
def die() -> str:
    """End the whole server."""
    os._exit(3)


@shop.tool()
def order(seconds: float, log: str) -> str:
    """Change the world, then take long."""
    with Path(log).open("a", encoding="utf-8") as written:
        written.write("ordered\n")
    time.sleep(seconds)
    return "ordered"


@shop.tool(annotations=READS)
def look(seconds: float) -> str:
    """Take long, without any effect."""
    time.sleep(seconds)
    return "seen"


@shop.tool(annotations=READS)
def picture() -> CallToolResult:
    """Answer with more than text."""
    image = ImageContent(type="image", data="aGVsbG8=", mime_type="image/png")
    text = TextContent(type="text", text="see\x00 here")
    return CallToolResult(content=[text, image])


@shop.tool(annotations=READS)
def much(size: int) -> str:
    """Answer with so many characters."""
    return "x" * size


@shop.tool(name="odd", annotations=READS)
def describe(text: Annotated[str, Field(description="not\x00storable")]) -> str:
    """Describe an argument with a character that PostgreSQL cannot store."""
    return text


@shop.tool(name="odd\x00name", annotations=READS)
def misname() -> str:
    """Have a name with such a character."""
    return ""


if len(sys.argv) > 1:
    shop.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    shop.run("stdio")
