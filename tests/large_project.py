"""A large project: 30 models at eight nodes, two incidents at once, names as long as real ones.

One model's answers have been cut off for five hours; one provider's calls have timed out for
two. The same runs each time.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import Any
from uuid import UUID

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.backfill import backfill
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import UNTIL_DONE, fold
from diagnostics.store.partitions import ensure_partitions
from failsoft.events import PostedEvent

RUNS, DENSE = 30_000, 3_000
WEEK, WATCHED = timedelta(days=7), timedelta(hours=12)
CUT_OFF, OUTAGE = timedelta(hours=5), timedelta(hours=2)
BATCH = 1_000
MODELS = {
    "anthropic": ("claude-haiku-4-5-20251001", "claude-sonnet-4-5-20250929", "claude-opus-4-1"),
    "openai": ("gpt-5.1-2025-11-13", "gpt-5.1-codex-max", "gpt-5-mini", "gpt-4.1-nano-2025-04-14"),
    "google-vertex": ("gemini-3-pro-preview", "gemini-2.5-flash-lite-preview-09-2025", "gemini-2"),
    "fireworks-ai": (
        "accounts/fireworks/models/llama-v3p1-405b-instruct-long-context-preview",
        "accounts/fireworks/models/qwen3-235b-a22b-thinking-2507",
        "accounts/acme-robotics/deployedModels/planner-finetune-2025-11-02-8f3a1c",
    ),
    "bedrock-eu-central-1": ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu.amazon.nova-pro"),
    "bedrock-us-east-1": ("us.meta.llama4-maverick-17b-instruct-v1:0", "us.amazon.nova-lite-v1:0"),
    "mistral": ("mistral-large-2411", "magistral-medium-2509", "ministral-8b-2410"),
    "openrouter": ("deepseek/deepseek-chat-v3.1:free", "moonshotai/kimi-k2-0905:exacto", "grok-4"),
    "together": ("Qwen/Qwen2.5-72B-Instruct-Turbo", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    "azure-openai-westeurope": ("gpt-4o-prod-datazone-2024-11-20", "gpt-4o-prod-fallback"),
    "vllm-internal": ("qwen3-32b-awq", "phi-4", "llama3.2:3b"),
}
NODES = (
    *("plan", "next_step", "actions", "classify", "compose_reply", "route_to_department"),
    *("extract_customer_entities", "summarize_conversation_for_handover"),
)
PLACES = [(provider, model) for provider, models in MODELS.items() for model in models]
USUAL = {"truncated": 0.012, "schema_invalid": 0.015, "not_json": 0.008, "timeout": 0.004}
FAULTS: dict[str, dict[str, Any]] = {
    "truncated": {
        "finish_reason": "length",
        "raw_output_preview": '{"goal": "Refund order 88121", "steps": [{"id": "s1", "to',
    },
    "schema_invalid": {
        "raw_output_preview": '{"goal": "Refund order 88121", "steps": [{"id": "s1"}]}',
        "validation_errors": [
            {"path": "/steps/0/tool", "code": "missing", "message": "Field required"}
        ],
    },
    "not_json": {"raw_output_preview": "Sure! I will look up the order for you first."},
}


def fill_large(project: Project) -> None:
    """Write the week before now into a project, with what the alert rules found."""
    now, random = clock.now(), Random(7)
    ensure_partitions((now - WEEK).date(), now.date())
    starts = [(now - random.random() * WEEK, random.choice(PLACES)) for _ in range(RUNS)]
    # As many runs of the one model as of the provider's three: both incidents are seen.
    hit = [place for place in PLACES for _ in range(_weight(*place))]
    starts += [(now - random.random() * WATCHED, random.choice(hit)) for _ in range(DENSE)]
    events = (
        event
        for at, place in sorted(starts)
        for event in _run(min(at, now - timedelta(minutes=1)), now, *place, random)
    )
    while batch := list(islice(events, BATCH)):
        record(project.pk, batch)
    fold(UNTIL_DONE)
    backfill(project.pk, now - WATCHED, now)


def _weight(provider: str, model: str) -> int:
    return 3 if "haiku" in model else int(provider == "mistral")


def _odds(at: datetime, now: datetime, provider: str, model: str) -> dict[str, float]:
    odds = dict(USUAL)
    if "haiku" in model and at > now - CUT_OFF:
        odds["truncated"] = 0.5
    if provider == "mistral" and at > now - OUTAGE:
        odds["timeout"] = 0.75
    return odds


def _run(
    at: datetime, now: datetime, provider: str, model: str, random: Random
) -> Iterator[PostedEvent]:
    node = random.choice(NODES)
    fields: dict[str, Any] = {
        "correlation_id": f"req-{random.getrandbits(40):010x}",
        "node": node,
        "provider": provider,
        "model": model,
        "environment": "staging" if random.random() < 0.03 else "prod",
        "source": "customer-operations-orchestrator",
        "release": "2025.47.3",
        "schema": "PlanPayload" if node == "plan" else "NextAction",
        "prompt_version": f"{node[:12]}-v{3 if at > now - WEEK / 2 else 2}",
        "cycle": 1,
    }

    def event(kind: str, **more: Any) -> PostedEvent:
        own = {
            "event_id": UUID(int=random.getrandbits(128), version=4),
            "name": f"graph.{node}.{kind}",
            "occurred_at": at,
        }
        return PostedEvent.model_validate({**fields, **own, **more})

    fault = ""
    for attempt in (1, 2):
        odds = _odds(at, now, provider, model)
        fault = next((kind for kind, odd in odds.items() if random.random() < odd), "")
        call = {
            "attempt": attempt,
            "latency_ms": random.randint(700, 2_600),
            "input_tokens": random.randint(600, 2_500),
            "output_tokens": random.randint(80, 600),
            "max_output_tokens": 1_024,
        }
        if not fault:
            yield event("succeeded", **call)
            return
        if fault == "timeout":
            yield event("provider_error", **call, attributes={"call_error_type": fault})
        else:
            yield event("parse_invalid", **call, parse_error_type=fault, **FAULTS[fault])
    reason = "timeout" if fault == "timeout" else f"{node}_parse_failed"
    yield event("degraded", attempts=2, reason=reason, status="failed")
