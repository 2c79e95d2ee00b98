"""What can go wrong with an MCP server, in words that may be shown."""


class ServerUnavailableError(Exception):
    """The server cannot be started, reached or understood; the message says why."""


class SessionEndedError(Exception):
    """The server does not know the session any more; the call was not made."""
