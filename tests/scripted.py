"""A provider that answers from a script in memory."""

from collections.abc import Iterable, Mapping
from typing import Any

from agents.llm.provider import Completion, CompletionRequest
from agents.llm.scripted import ScriptedReply, pick_reply


class ScriptedProvider:
    """Replies from a list, in order; keeps every request."""

    def __init__(self, replies: Iterable[str | Mapping[str, Any]]) -> None:
        self._replies = [
            ScriptedReply(text=reply) if isinstance(reply, str) else ScriptedReply(**reply)
            for reply in replies
        ]
        self.requests: list[CompletionRequest] = []

    def complete(self, request: CompletionRequest) -> Completion:
        """Return the next reply; the last one again if it repeats."""
        self.requests.append(request)
        return pick_reply(self._replies, len(self.requests) - 1).play()


# By the address of the provider's row.
SCRIPTS: dict[str, ScriptedProvider] = {}
