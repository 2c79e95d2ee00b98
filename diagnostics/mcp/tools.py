"""The tools of an assistant: what the REST API answers, under the names of questions.

A tool reads endpoints of the REST API with the key of its caller, so that filters, bounds,
scopes and wire formats are the same at both doors.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

import structlog
from django.http import HttpRequest, QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder

from diagnostics.accounts.authentication import KeyedView, project_of
from diagnostics.alerting.incident_api import IncidentsView, IncidentView
from diagnostics.alerting.incident_models import Incident
from diagnostics.console.api import SeriesView, VerdictView, refuse_uncounted
from diagnostics.console.compare import describe_comparison, read_comparison
from diagnostics.console.comparison import Against
from diagnostics.console.event_api import EventsView
from diagnostics.console.run_api import PARAMETERS as RUN_PARAMETERS
from diagnostics.console.run_api import AgentRunsView, AgentRunView
from diagnostics.failures.api import PARAMETERS as FAILURE_PARAMETERS
from diagnostics.failures.api import FailuresView
from diagnostics.mcp.bounds import TooLongError, write_answer
from diagnostics.rest.faults import answer_fault
from diagnostics.rest.filters import (
    PAGE_PARAMETERS,
    SERIES_PARAMETERS,
    read_choices,
    refusal_of,
    select,
)
from diagnostics.rest.resources import EMPTY
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.web.errors import make_id

log = structlog.get_logger(__name__)
Json = dict[str, Any]
OK = 200
MOST_BESIDE = 5
MOST_EVENTS = 100
DEFAULT_LIMIT = "20"
# Before any incident.
EVER = "2000-01-01T00:00:00Z"
INCIDENT = ("id", "title", "state", "severity", "onset", "cause", "sentence")
FAILURE = ("id", "kind", "node", "schema", "error_type", "pointer", "seen", "last_seen", "models")
SERIES = (
    *("environment", "node", "provider", "model", "state", "since", "runs", "degraded"),
    *("degraded_rate", "baseline", "calls", "calls_failed", "calls_failed_rate"),
)
RUN = ("correlation_id", "outcome", "attempts", "provider", "model", "ended_at")
_PAGES = [parameter for parameter in PAGE_PARAMETERS if parameter.name != "format"]
_COMPARED = [
    OpenApiParameter(
        "with", str, enum=list(Against), description="which time B has; period: the one before"
    ),
    OpenApiParameter("b", str, description="filters of B, as in q; those of A unless told"),
    OpenApiParameter("b_from", str, description="with=custom: first moment of B, RFC 3339"),
    OpenApiParameter("b_to", str, description="with=custom: moment after the last one of B"),
]


class QuestionRefusedError(Exception):
    """What the assistant asked for cannot be answered."""


class Reader:
    """Reads endpoints of the REST API with the key of the caller."""

    def __init__(self, caller: Request) -> None:
        """`caller`: the authenticated request at the door."""
        self._caller = caller
        self.project_id = project_of(caller).pk

    def read(self, view: type[KeyedView], parameters: Mapping[str, str], **path: object) -> Json:
        """Return what GET answers. Raises QuestionRefusedError."""
        request = HttpRequest()
        request.method = "GET"
        request.GET = QueryDict(urlencode(parameters))
        request.META = {**self._caller.META, "HTTP_ACCEPT": "application/json"}
        answer: Any = view.as_view()(request, **path)
        if answer.status_code != OK:
            raise QuestionRefusedError(answer.data["detail"])
        body: Json = answer.data
        return body

    def items(
        self, view: type[KeyedView], parameters: Mapping[str, str], fields: Sequence[str]
    ) -> list[Json]:
        items = self.read(view, {**parameters, "limit": str(MOST_BESIDE)})["items"]
        return [{name: item[name] for name in fields} for item in items]


def _degradation_now(reader: Reader, parameters: Mapping[str, str]) -> Json:
    verdict = reader.read(VerdictView, parameters)
    selection = select(parameters, SERIES_PARAMETERS).only(SERIES_FIELDS)
    whenever = {"range": None, "from": None, "to": None}
    place = dict(parse_qsl(selection.query(**whenever)))
    unresolved = [
        incident
        for state in (Incident.State.OPEN, Incident.State.ACKNOWLEDGED)
        for incident in reader.items(
            IncidentsView, {**place, "from": EVER, "state": state}, INCIDENT
        )
    ]
    return {
        "sentence": verdict["sentence"],
        "verdict": verdict,
        "worst_series": reader.items(SeriesView, parameters, SERIES),
        "open_incidents": sorted(unresolved, key=lambda item: -item["id"])[:MOST_BESIDE],
        "most_frequent_failures": reader.items(FailuresView, parameters, FAILURE),
        "go_on": "explain_incident with an id of open_incidents; search_runs with outcome=degraded"
        " and the filters of a series; compare to see what changed",
    }


def _explain_incident(reader: Reader, parameters: Mapping[str, str]) -> Json:
    number = parameters["incident_id"]
    if not (number.isascii() and number.isdigit() and len(number) <= len(str(2**31))):
        raise QuestionRefusedError("incident_id: the number of an incident")
    incident = reader.read(IncidentView, {}, incident_id=int(number))
    during = dict(parse_qsl(incident["filter"])) | {"from": incident["onset"].isoformat()}
    if incident["cleared_at"]:
        during["to"] = incident["cleared_at"].isoformat()
    runs = reader.items(AgentRunsView, {**during, "outcome": "degraded"}, RUN)
    return {
        **incident,
        "most_frequent_failures": reader.items(FailuresView, during, FAILURE),
        "degraded_runs": runs,
        "go_on": "run_timeline with a correlation_id of degraded_runs",
    }


def _run_timeline(reader: Reader, parameters: Mapping[str, str]) -> Json:
    run = reader.read(AgentRunView, {}, reference=parameters["correlation_id"])
    page = reader.read(EventsView, {**parameters, "limit": str(MOST_EVENTS)})
    events = [_without_blanks(event) for event in reversed(page["items"])]
    return {"run": run, "events": events, "has_earlier_events": page["next"] is not None}


def _without_blanks(item: Json) -> Json:
    # A number of 0 equals False, and is no blank.
    shown = ((name, value) for name, value in item.items() if value is not False)
    return {name: value for name, value in shown if value not in (*EMPTY, {})}


def _compare(reader: Reader, parameters: Mapping[str, str]) -> Json:
    names = [parameter.name for parameter in _COMPARED]
    selection = select(parameters, SERIES_PARAMETERS, also=names)
    refuse_uncounted(selection)
    read_choices(parameters, {"with": list(Against)})
    question = read_comparison(reader.project_id, parameters, selection)
    if question.other.faults:
        raise refusal_of(question.other.faults)
    if question.against is Against.CUSTOM and not question.other.is_custom:
        raise refusal_of({"b_from": "is required"})
    return describe_comparison(reader.project_id, question)


def _list(view: type[KeyedView]) -> Callable[[Reader, Mapping[str, str]], Json]:
    return lambda reader, parameters: reader.read(view, {"limit": DEFAULT_LIMIT, **parameters})


@dataclass(frozen=True, slots=True)
class AssistantTool:
    """A question that an assistant may ask, its arguments, and what answers it."""

    name: str
    description: str
    parameters: Sequence[OpenApiParameter]
    answer: Callable[[Reader, Mapping[str, str]], Json]

    @property
    def schema(self) -> Json:
        return {
            "type": "object",
            "properties": {
                parameter.name: _describe_parameter(parameter) for parameter in self.parameters
            },
            "required": [parameter.name for parameter in self.parameters if parameter.required],
            "additionalProperties": False,
        }


def _describe_parameter(parameter: OpenApiParameter) -> Json:
    kind = "integer" if parameter.type is int else "string"
    described = {"type": kind, "description": parameter.description, "enum": parameter.enum}
    return {key: value for key, value in described.items() if value}


TOOLS = (
    AssistantTool(
        "degradation_now",
        "Start here. Whether planning or any other call got worse, since when, by how much, for"
        " what cause, and what to change: a sentence with its numbers, the worst series, open"
        " incidents and frequent failures with their ids. The last 24 hours unless told.",
        SERIES_PARAMETERS,
        _degradation_now,
    ),
    AssistantTool(
        "explain_incident",
        "One incident: cause and evidence when it fired and now, affected series, timeline,"
        " its failures and some degraded runs.",
        [OpenApiParameter("incident_id", int, required=True)],
        _explain_incident,
    ),
    AssistantTool(
        "failures",
        "Failures by kind and place, the most frequent first, with models and trend. The last 24"
        " hours unless told.",
        [*FAILURE_PARAMETERS, *_PAGES],
        _list(FailuresView),
    ),
    AssistantTool(
        "run_timeline",
        "One run: how it ended, what it cost, and its attempts in order, each with its errors and"
        " the beginning of the model's answer.",
        [OpenApiParameter("correlation_id", str, required=True)],
        _run_timeline,
    ),
    AssistantTool(
        "compare",
        "Two sides A and B: rates and kinds of failure, differences with 95 % intervals. A has the"
        " filters; B is the time before, a week earlier, before the deploy, or filters of its own.",
        [*SERIES_PARAMETERS, *_COMPARED],
        _compare,
    ),
    AssistantTool(
        "search_runs",
        "Runs of agents, newest first, by series, outcome, words in texts or errors.",
        [parameter for parameter in RUN_PARAMETERS if parameter.name != "format"],
        _list(AgentRunsView),
    ),
)
_BY_NAME = {tool.name: tool for tool in TOOLS}


def call_tool(caller: Request, name: str, arguments: Mapping[str, object]) -> str:
    """Return the answer of a tool as JSON text. Raises QuestionRefusedError with the reason."""
    tool = _BY_NAME.get(name)
    if tool is None:
        raise QuestionRefusedError(f"the tools are {', '.join(_BY_NAME)}")
    try:
        answer = tool.answer(Reader(caller), _read_arguments(tool, arguments))
        return write_answer(json.loads(json.dumps(answer, cls=JSONEncoder)))
    except (QuestionRefusedError, TooLongError) as error:
        raise QuestionRefusedError(str(error)) from error
    except Exception as error:
        raise QuestionRefusedError(_reason_of(error)) from error


def _read_arguments(tool: AssistantTool, arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments as query parameters. Raises QuestionRefusedError."""
    known = {parameter.name: parameter for parameter in tool.parameters}
    for name, value in arguments.items():
        if name not in known:
            raise QuestionRefusedError(f"the arguments of {tool.name} are {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, str | int | None):
            raise QuestionRefusedError(f"{name}: a text or a whole number")
    texts = {name: str(value) for name, value in arguments.items() if value is not None}
    for name, parameter in known.items():
        if parameter.required and not texts.get(name):
            raise QuestionRefusedError(f"{name}: is required")
    return texts


def _reason_of(error: Exception) -> str:
    answer = answer_fault(error, {})
    if answer is not None:
        return str(answer.data["detail"])
    error_id = make_id()
    log.error("tool_failed", error_id=error_id, exc_info=error)
    return f"Internal error; it is in the log under the id {error_id}."
