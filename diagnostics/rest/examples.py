"""Examples of requests and answers, shown at /api/docs/ and in the OpenAPI document."""

import json
from pathlib import Path

from drf_spectacular.utils import OpenApiExample

from diagnostics.rest.resources import Json


def request_example(name: str, value: object) -> OpenApiExample:
    """Return the example of a request."""
    return OpenApiExample(name, value=value, request_only=True)


def response_example(name: str, value: object, *codes: int) -> OpenApiExample:
    """Return the example of an answer."""
    return OpenApiExample(
        name, value=value, response_only=True, status_codes=[str(code) for code in codes]
    )


def page(item: object, **beside: object) -> Json:
    """Return a page of one item."""
    return {"items": [item], "next": None, **beside}


_VALUES: Json = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

EVENTS = request_example("one failed attempt", [_VALUES["posted_event"]])
ANSWERS = request_example("an unchecked answer", [_VALUES["posted_answer"]])
BATCH_RESULT = response_example("one of a hundred was refused", _VALUES["batch_result"], 200, 207)
EVENTS_PAGE = response_example("a page of events", page(_VALUES["event"], notes=[]), 200)
OUTCOMES = request_example("44 runs of a minute", [_VALUES["outcome"]])
ASSESSMENT = request_example("a valid answer that a user did not like", [_VALUES["assessment"]])
OUTCOMES_RESULT = response_example("all were added", _VALUES["outcomes_result"], 200, 207)
DEPLOY = request_example("a new prompt", _VALUES["posted_deploy"])
DEPLOY_KEPT = response_example("the deploy as kept", _VALUES["deploy"], 200, 201)
DEPLOYS_PAGE = response_example("a page of deploys", page(_VALUES["deploy"]), 200)
REJECTS = response_example("one refused item", page(_VALUES["reject"]), 200)
INGEST = response_example("the state of ingestion", _VALUES["ingest"], 200)
SCHEMA = request_example("a plan", _VALUES["schema"])
SERIES_PAGE = response_example(
    "one degrading series", page(_VALUES["series"], covers=_VALUES["covers"]), 200
)
FAILURE = response_example(
    "one kind of failure", {**_VALUES["failure"], "covers": _VALUES["covers"]}, 200
)
FAILURES_PAGE = response_example(
    "one kind of failure", page(_VALUES["failure"], covers=_VALUES["covers"]), 200
)
