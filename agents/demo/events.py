"""Events and deploys of the demo's runs, with ids that mark them as demo data."""

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from agents.demo.calls import OUTPUT_LIMIT_TOKENS, TEMPERATURE, DemoAttempts, DemoCall
from agents.demo.story import HOUR, STORY, release_at
from diagnostics.ingest.deploy_items import DeployKind, PostedDeploy
from failsoft.events import AFTER, NEAREST_TOOL, EventKind, PostedEvent, event_name
from failsoft.identifiers import uuid7
from failsoft.retry.answers import Misunderstood

MARK = bytes.fromhex("de3057a1150f")
"""The last 48 bits of every id of the demo, by which its rows are removed."""
NOTE = "Demo data."
"""The prefix of every note of the demo, by which it is removed."""


NEAREST = {
    "orders.fetch": "orders.get",
    "ticket.search": "tickets.search",
    "metric.query": "metrics.query",
    "mail.sent": "mail.send",
}
"""Names of tools as models misspell them."""
MISSPELLED = tuple(NEAREST)


def demo_id(at: datetime, *parts: object) -> UUID:
    """Derive an id of the moment `at` that always ends in the demo's mark."""
    digest = sha256("\n".join(str(part) for part in parts).encode()).digest()
    return uuid7(at, digest[:4] + MARK)


def events_of(ladder: DemoAttempts) -> Iterator[PostedEvent]:
    """Yield an event for each call, then the degradation or the unknown tool."""
    for call in ladder.calls:
        yield _event_of_call(ladder, call)
    after = ladder.ended_at + AFTER
    if ladder.reason is not None:
        attempts, reason = len(ladder.calls), ladder.reason
        degraded = EventKind.DEGRADED
        yield _event(ladder, degraded, after, attempts=attempts, reason=reason, status="failed")
    if tool := ladder.unknown_tool:
        nearest = {NEAREST_TOOL: NEAREST[tool]}
        yield _event(ladder, EventKind.UNKNOWN_TOOL, after, nearest, tool=tool)


def details_of(ladder: DemoAttempts, call: DemoCall) -> dict[str, Any]:
    """Return the fields that the event of a call and its attempt share."""
    by_schema = call.number > 1 and ladder.place.provider == "openai"
    return {
        "attempt": call.number,
        "finish_reason": call.answer.finish_reason if call.answer else None,
        "output_mode": "schema" if by_schema else "text",
        "max_output_tokens": OUTPUT_LIMIT_TOKENS[ladder.schema],
        "temperature": TEMPERATURE,
        "latency_ms": call.latency_ms,
        "input_tokens": call.input_tokens,
        "output_tokens": call.answer.output_tokens if call.answer else None,
    }


def _event_of_call(ladder: DemoAttempts, call: DemoCall) -> PostedEvent:
    details, at = details_of(ladder, call), call.ended_at
    if call.answer is None:
        lost = {"call_error_type": str(call.error_type)}
        return _event(ladder, EventKind.PROVIDER_ERROR, at, lost, **details)
    reading = call.answer.reading
    details |= {"repairs": reading.repairs, "coerced": reading.coerced}
    if not isinstance(reading, Misunderstood):
        return _event(ladder, EventKind.SUCCEEDED, at, **details)
    return _event(
        ladder,
        EventKind.PARSE_INVALID,
        at,
        parse_error_type=reading.error_type,
        validation_errors=reading.errors,
        raw_output_preview=call.answer.text,
        **details,
    )


def _event(
    ladder: DemoAttempts,
    kind: EventKind,
    at: datetime,
    attributes: dict[str, str] | None = None,
    **fields: Any,
) -> PostedEvent:
    name = event_name(ladder.place.node, kind)
    identity = (ladder.correlation_id, ladder.cycle, fields.get("attempt"), name)
    return PostedEvent(
        event_id=demo_id(at, *identity),
        name=name,
        occurred_at=at,
        correlation_id=ladder.correlation_id,
        cycle=ladder.cycle,
        attributes={"demo": True, **(attributes or {})},
        # In the demo the requested model always answers.
        **{k: value for k, value in ladder.place._asdict().items() if k != "served"},
        **fields,
    )


def story_deploys(now: datetime) -> Iterator[PostedDeploy]:
    """Yield the releases and prompt versions of the two weeks before `now`."""
    for hours in STORY.deployed_hours_ago:
        if hours < STORY.days * 24:
            for source in STORY.sources:
                version = release_at(now, hours * HOUR)
                yield demo_deploy(now - hours * HOUR, "release", version, source)
    for period in STORY.prompts:
        if period.since_hours < STORY.days * 24:
            at, scope = now - period.since_hours * HOUR, (period.source, period.environment)
            yield demo_deploy(at, "prompt", period.name, *scope)


def demo_deploy(
    at: datetime, kind: str, version: str, source: str | None, environment: str | None = None
) -> PostedDeploy:
    return PostedDeploy(
        at=at,
        kind=DeployKind(kind),
        source=source,
        environment=environment,
        version=version,
        note=NOTE,
    )
