"""An MCP server to try tools with: a shop that knows prices and takes orders.

    python examples/mcp_server.py                 over standard input and output
    python examples/mcp_server.py http 9000       streamable HTTP on 127.0.0.1:9000/mcp

It needs the package `mcp`, which Failsoft installs.
"""

import sys
from typing import TypedDict

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

PRICES = {"apple": 40, "pear": 55, "melon": 310}
shop = MCPServer("shop", version="1")
orders: dict[str, str] = {}


class Price(TypedDict):
    """What one of a product costs."""

    product: str
    cents: int


@shop.tool(annotations=ToolAnnotations(readOnlyHint=True))
def price(product: str) -> Price:
    """Return the price of a product in cents: apple, pear or melon."""
    if product not in PRICES:
        raise ToolError(f"no product is called {product}")
    return {"product": product, "cents": PRICES[product]}


@shop.tool(annotations=ToolAnnotations(idempotentHint=True))
def order(product: str, reference: str) -> str:
    """Order one of a product; the same reference again changes nothing."""
    return orders.setdefault(reference, f"order {len(orders) + 1}: {product}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        shop.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        shop.run("stdio")
