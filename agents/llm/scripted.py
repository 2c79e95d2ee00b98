"""A provider that answers from a script: a double of a model for installations that allow it.

A script is a JSON Lines file, one reply a line:
`{"text": "...", "finish_reason": "length"}`, `{"tool_calls": [...]}` or `{"error": "timeout"}`.
A reply may carry `delay_seconds`, tokens and who answered, named as in `Completion`; a last reply
with `"repeat": true` is repeated forever. The position is in `<file>.cursor`, every
request in `<file>.calls`.
"""

import fcntl
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.llm.provider import (
    CallTimeoutError,
    Completion,
    CompletionRequest,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedCallError,
)

ERRORS: dict[str, type[ProviderError]] = {
    "timeout": CallTimeoutError,
    "rate_limited": RateLimitedError,
    "provider_error": ProviderUnavailableError,
    "refused": RefusedCallError,
}


class ScriptedReply(BaseModel):
    """One line of a script: a text, or the name of an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = ""
    error: str | None = None
    finish_reason: str | None = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    served_model: str | None = None
    upstream: str | None = None
    system_fingerprint: str | None = None
    tool_calls: tuple[Any, ...] = ()
    delay_seconds: float = 0
    repeat: bool = False

    def play(self) -> Completion:
        time.sleep(self.delay_seconds)
        if self.error is not None:
            raise ERRORS[self.error](f"scripted {self.error}")
        return Completion(**self.model_dump(exclude={"error", "delay_seconds", "repeat"}))


class ScriptFile:
    """Replies from a file that several processes share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def complete(self, request: CompletionRequest) -> Completion:
        with Path(f"{self._path}.cursor").open("a+", encoding="utf-8") as cursor:
            fcntl.flock(cursor, fcntl.LOCK_EX)
            cursor.seek(0)
            place = int(cursor.read() or 0)
            cursor.truncate(0)
            cursor.write(str(place + 1))
            with Path(f"{self._path}.calls").open("a", encoding="utf-8") as calls:
                calls.write(json.dumps(asdict(request)) + "\n")
        lines = self._path.read_text(encoding="utf-8").splitlines()
        # By json, which reads half a character, as a model may write it.
        replies = [ScriptedReply.model_validate(json.loads(line)) for line in lines if line.strip()]
        return pick_reply(replies, place).play()


def open_script(address: str) -> ScriptFile:
    """Return the script at `file:/path`; RefusedCallError otherwise."""
    kind, _, path = address.partition(":")
    if kind != "file":
        raise RefusedCallError("a script must be given as file:/path")
    return ScriptFile(Path(path))


def pick_reply(replies: Sequence[ScriptedReply], place: int) -> ScriptedReply:
    """Return the reply of a place; the last one again if it repeats."""
    if place < len(replies):
        return replies[place]
    if replies and replies[-1].repeat:
        return replies[-1]
    raise RefusedCallError("the script has no more answers")
