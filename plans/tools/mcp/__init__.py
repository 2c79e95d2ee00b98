"""Tools of MCP servers: discovered into rows, called through the official SDK.

`catalogue` reads the rows and needs no SDK; `connections` and what lies below it is
imported by name where a call or a discovery happens.
"""
