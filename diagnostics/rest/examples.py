"""Examples of requests and answers, shown at /api/docs/ and in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

FAILED_ATTEMPT: dict[str, Any] = {
    "event_id": "0199a3c2-7e1c-7b5e-9a53-3f8f6c1d2e4a",
    "name": "graph.next_step.parse_invalid",
    "occurred_at": "2026-11-21T14:32:07.120Z",
    "correlation_id": "run-8842",
    "cycle": 1,
    "attempt": 1,
    "provider": "anthropic",
    "model": "claude-haiku-4",
    "parse_error_type": "truncated",
    "validation_errors": [{"path": "/steps/2/tool", "message": "required"}],
}
KEPT_EVENT: dict[str, Any] = {
    "event_id": "0199a3c2-7e1c-7b5e-9a53-3f8f6c1d2e4a",
    "name": "graph.next_step.parse_invalid",
    "kind": "parse_invalid",
    "occurred_at": "2026-11-21T14:32:07.120000Z",
    "received_at": "2026-11-21T14:32:07.604211Z",
    "correlation_id": "run-8842",
    "node": "next_step",
    "cycle": 1,
    "attempt": 1,
    "provider": "anthropic",
    "model": "claude-haiku-4",
    "parse_error_type": "truncated",
    "raw_output_preview": '{"steps": [{"step_id":',
}
OUTCOME: dict[str, Any] = {
    "minute": "2026-11-21T14:32:00Z",
    "sequence": 0,
    "source": "support-bot",
    "environment": "prod",
    "node": "next_step",
    "provider": "anthropic",
    "model": "claude-haiku-4",
    "prompt_version": "planner-v5",
    "schema": "NextStepProposal",
    "ok_first": 40,
    "repaired": 3,
    "degraded": 1,
}
POSTED_DEPLOY: dict[str, Any] = {
    "at": "2026-11-21T09:10:00Z",
    "kind": "prompt",
    "source": "support-bot",
    "version": "planner-v5",
    "note": "shorter tool list",
}
FAULT = {
    "path": "/attempt",
    "code": "greater_than_equal",
    "message": "Input should be greater than or equal to 1",
}
ONE_REFUSED = {
    "accepted": 98,
    "duplicates": 1,
    "rejected": 1,
    "preview_share": 1.0,
    "results": [
        {
            "index": 7,
            "event_id": "0199a3c2-7e1c-7b5e-9a53-3f8f6c1d2e4b",
            "status": "invalid",
            "errors": [FAULT],
        }
    ],
}
REJECT = {
    "id": 17,
    "received_at": "2026-11-21T14:32:08.001Z",
    "endpoint": "/api/v1/events",
    "http_status": 207,
    "key_id": "5f0c1d2e3a4b",
    "key_name": "support bot",
    "source": "support-bot",
    "index": 7,
    "event_id": "0199a3c2-7e1c-7b5e-9a53-3f8f6c1d2e4b",
    **FAULT,
    "errors": [FAULT],
    "head": '{"event_id": "0199a3c2-7e1c-7b5e-9a53-3f8f6c1d2e4b", "attempt": 0}',
    "size_bytes": 412,
}
STANDING = {
    "limits": {
        "key_events_per_second": 10000,
        "key_burst_events": 100000,
        "events_per_day": 0,
        "events_per_month": 0,
        "spike_events_per_minute": 300000,
    },
    "today": {"day": "2026-11-21", "events": 48211, "sampled_out": 0, "refused": 0},
    "events_this_month": 911402,
    "last_minute_events": 37,
    "preview_share": 1.0,
    "rejects": 1,
}
ONE_SERIES = {
    "provider": "anthropic",
    "model": "claude-haiku-4",
    "node": "next_step",
    "environment": "prod",
    "state": "degrading",
    "runs": 412,
    "degraded": 128,
    "degraded_rate": 0.3107,
    "degraded_low": 0.2678,
    "degraded_high": 0.357,
    "baseline": 0.04,
    "first_pass_rate": 0.52,
    "repair_success_rate": 0.35,
    "retry_tokens": 190211,
    "retry_seconds": 611.4,
    "since": "2026-11-21T14:32:00Z",
}

ONE_FAILURE = {
    "id": 4,
    "fingerprint": "5c2e9a31-7c1b-0f6d-8e42-9a1b3c5d7e9f",
    "fingerprint_version": 1,
    "state": "ongoing",
    "node": "next_step",
    "schema": "NextStepProposal",
    "kind": "parse_invalid",
    "error_type": "schema_invalid",
    "pointer": "/steps/*/tool",
    "detail": "missing",
    "seen": 212,
    "seen_in_all": 1904,
    "first_seen": "2026-11-18T07:02:11Z",
    "last_seen": "2026-11-21T14:32:07Z",
    "runs": 180,
    "repaired": 151,
    "models": [{"provider": "anthropic", "model": "claude-haiku-4", "seen": 212}],
    "trend": [8] * 20 + [13] * 4,
}


def asked(name: str, value: object) -> OpenApiExample:
    """Return the example of a request."""
    return OpenApiExample(name, value=value, request_only=True)


def answered(name: str, value: object, *codes: int) -> OpenApiExample:
    """Return the example of an answer."""
    return OpenApiExample(
        name,
        value=value,
        response_only=True,
        status_codes=[str(code) for code in codes],
    )


def page(item: object, **beside: object) -> dict[str, object]:
    """Return a page of one item."""
    return {"items": [item], "next": None, **beside}


EVENTS = asked("one failed attempt", [FAILED_ATTEMPT])
BATCH_RESULT = answered("one of a hundred was refused", ONE_REFUSED, 200, 207)
EVENTS_PAGE = answered("a page of events", page(KEPT_EVENT, notes=[]), 200)
OUTCOMES = asked("44 runs of a minute", [OUTCOME])
OUTCOMES_RESULT = answered(
    "all were added",
    {**ONE_REFUSED, "accepted": 1, "duplicates": 0, "rejected": 0, "results": []},
    *(200, 207),
)
DEPLOY = asked("a new prompt", POSTED_DEPLOY)
DEPLOY_ANSWER = {"id": 3, "environment": None, **POSTED_DEPLOY}
DEPLOY_KEPT = answered("the deploy as kept", DEPLOY_ANSWER, 200, 201)
DEPLOYS_PAGE = answered("a page of deploys", page(DEPLOY_ANSWER), 200)
REJECTS = answered("one refused item", page(REJECT), 200)
INGEST = answered("how ingestion stands", STANDING, 200)
SERIES_PAGE = answered("one degrading series", page(ONE_SERIES), 200)
FAILURE = answered("one kind of failure", ONE_FAILURE, 200)
FAILURES_PAGE = answered("one kind of failure", page(ONE_FAILURE), 200)
