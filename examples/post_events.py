"""Post one run of a planner to Failsoft, with the standard library only.

A first answer that was cut off, then a good one. The running local stack is found;
FAILSOFT_URL and FAILSOFT_API_KEY name another installation:

    python3 examples/post_events.py
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

from failsoft_client import find_installation


def new_event_id() -> str:
    """Make a UUID version 7: it carries its time, which keeps the tables in order."""
    milliseconds = time.time_ns() // 1_000_000
    chance = int.from_bytes(os.urandom(10), "big")
    high, low = chance >> 68, chance & ((1 << 62) - 1)
    value = milliseconds << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low
    return str(uuid.UUID(int=value))


def make_event(name: str, correlation_id: str, **fields: object) -> dict[str, object]:
    """Make an event of one run; the id is kept when the event has to be sent again."""
    return {
        "event_id": new_event_id(),
        "name": f"graph.plan.{name}",
        "occurred_at": datetime.now(timezone.utc).isoformat(),  # noqa: UP017 - for old Pythons
        "correlation_id": correlation_id,
        "cycle": 1,
        "provider": "example",
        "model": "example-1",
        "environment": "dev",
        "source": "post-events-example",
        "prompt_version": "greeting-v1",
        **fields,
    }


def make_run() -> list[dict[str, object]]:
    """Make the two events of a run that was repaired."""
    correlation_id = f"example-{uuid.uuid4()}"
    cut_off = make_event(
        "parse_invalid",
        correlation_id,
        attempt=1,
        parse_error_type="truncated",
        finish_reason="length",
        validation_errors=[
            {"path": "/steps/1", "message": "string cut off", "line": 3, "column": 18}
        ],
        raw_output_preview='{"steps": [\n  {"step_id": "step_1"},\n  {"step_id": "st',
        input_tokens=212,
        output_tokens=64,
        latency_ms=840,
    )
    good = make_event(
        "succeeded",
        correlation_id,
        attempt=2,
        finish_reason="stop",
        input_tokens=301,
        output_tokens=71,
        latency_ms=910,
    )
    return [cut_off, good]


def post(events: list[dict[str, object]], url: str, key: str) -> dict[str, object]:
    """Send the events; sending the same ones again stores nothing twice."""
    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{url}/api/v1/events",
        data=json.dumps(events).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - same
        result: dict[str, object] = json.load(answer)
    return result


def main() -> int:
    """Post one run and print the answer."""
    url, key = find_installation()
    try:
        answer = post(make_run(), url, key)
    except urllib.error.HTTPError as error:
        sys.stderr.write(f"{error.code}: {error.read().decode()}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{url} cannot be reached: {error}\n")
        return 1
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return 0 if answer["rejected"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
