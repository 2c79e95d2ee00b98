"""Posts an event and two answers by the client that openapi-python-client made."""

import json
import os
from datetime import UTC, datetime
from uuid import uuid4

from failsoft_client import AuthenticatedClient
from failsoft_client.api.events import events_create
from failsoft_client.models import (
    AnsweredCall,
    AnsweredCallArgumentsType1,
    PostedAnswer,
    PostedEvent,
    PostedEventAttributes,
)

NOW = datetime.now(UTC)
client = AuthenticatedClient(os.environ["FAILSOFT_URL"], os.environ["FAILSOFT_KEY"])
attributes = PostedEventAttributes()
attributes["region"] = "eu"
plan = AnsweredCallArgumentsType1()
plan["title"] = "Refund"
items = [
    PostedEvent(
        event_id=uuid4(),
        name="graph.plan.parse_invalid",
        occurred_at=NOW,
        correlation_id="run-1",
        cycle=1,
        attempt=1,
        parse_error_type="not_json",
        attributes=attributes,
    ),
    PostedAnswer(
        name="answered",
        node="plan",
        occurred_at=NOW,
        correlation_id="run-2",
        text='{"title": "Refund", "steps": []}',
    ),
    PostedAnswer(
        name="graph.plan.answered",
        occurred_at=NOW,
        correlation_id="run-3",
        tool_calls=[AnsweredCall(name="plan", arguments=plan)],
    ),
]
answer = events_create.sync_detailed(client=client, body=items, verbose=True)
told = answer.parsed.to_dict()
print(json.dumps({"status": answer.status_code, **told}))  # noqa: T201 - read by the test
