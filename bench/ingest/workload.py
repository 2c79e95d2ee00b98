"""The events that every contender is sent: half good attempts, half failures with a preview."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from failsoft.identifiers import uuid7

WORDS = (
    *("the", "plan", "has", "a", "step", "that", "calls"),
    *("a", "tool", "with", "two", "arguments", "and", "waits"),
)
PREVIEW_CHARACTERS = 600
MODELS = ("claude-haiku-4", "gpt-5-mini", "llama-4-8b")


class Workload:
    """Fresh events for ever, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        """Begin an hour ago."""
        self._chance = Random(seed)  # noqa: S311 - no secret
        self._at = datetime.now(UTC) - timedelta(hours=1)

    def batch(self, size: int) -> list[dict[str, Any]]:
        """Give the next events."""
        return [self._event() for _ in range(size)]

    def bodies(self, size: int, count: int) -> Iterator[bytes]:
        """Give the next batches as the JSON that is posted."""
        for _ in range(count):
            yield to_body(self.batch(size))

    def _event(self) -> dict[str, Any]:
        self._at += timedelta(milliseconds=20)
        chance = self._chance
        event: dict[str, Any] = {
            "event_id": str(uuid7(self._at, chance.randbytes(10))),
            "name": "graph.next_step.succeeded",
            "occurred_at": self._at.isoformat(),
            "correlation_id": f"run-{chance.randrange(10**6)}",
            "cycle": 1,
            "attempt": 1,
            "provider": "anthropic",
            "model": chance.choice(MODELS),
            "schema": "NextStepProposal",
            "prompt_version": "planner-v5",
            "environment": "prod",
            "source": "support-bot",
            "finish_reason": "stop",
            "latency_ms": chance.randrange(200, 4000),
            "input_tokens": 911,
            "output_tokens": chance.randrange(20, 512),
        }
        return event if chance.random() < 0.5 else event | self._failure()

    def _failure(self) -> dict[str, Any]:
        text = " ".join(self._chance.choices(WORDS, k=200))[:PREVIEW_CHARACTERS]
        return {
            "name": "graph.next_step.parse_invalid",
            "parse_error_type": self._chance.choice(("truncated", "schema_invalid")),
            "finish_reason": "length",
            "validation_errors": [
                {"path": "/steps/2/tool", "code": "missing", "message": "required"}
            ],
            "raw_output_preview": '{"steps": [' + text,
        }


def to_body(events: Sequence[object]) -> bytes:
    """Write events as the JSON array that is posted."""
    return json.dumps(events, separators=(",", ":")).encode()
