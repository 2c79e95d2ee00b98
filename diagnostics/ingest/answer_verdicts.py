"""Answers of models, each checked within a time budget against its expected schema.

1. A tool call is checked against the schema its request gave for the tool, else against
   the one registered under the tool's name, else against the one of the node, if the call is
   its answer: the tool is named like the schema's title, or the two share a property.
2. A text is checked against the schema of its node, else against the one in its request.
3. Of several calls the first invalid one decides.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from time import thread_time
from typing import Any, NamedTuple

import jiter

from diagnostics.ingest.agent_schemas import schemas_for
from diagnostics.ingest.models import AgentSchema
from diagnostics.ingest.otlp.answers import CalledTool
from diagnostics.ingest.otlp.attributes import slug
from diagnostics.ingest.otlp.mapping import Draft
from diagnostics.ingest.schemas import (
    CompiledSchema,
    OverBudgetError,
    SchemaFaultError,
    SchemaVerdict,
    judge,
    read_schema,
)
from diagnostics.ingest.schemas.reading import MAX_BYTES, MAX_DEPTH, MAX_NODES
from failsoft.events import ParseErrorType
from failsoft.json_values import clean_json
from failsoft.parsing.makers import CUT, ending_of

# Per request; further answers are stored unchecked.
JUDGING_SECONDS = 1.0
NO_ARGUMENTS = "{}"


class ExpectedAnswer(NamedTuple):
    """The schema that an answer must have, and its name; None for any object or array."""

    schema: CompiledSchema | None
    name: str | None = None
    version: str | None = None


ANY_VALUE = ExpectedAnswer(None)


class UncheckedError(Exception):
    """an answer takes more time than its request has left"""


class AnswerVerdicts:
    """Checks the answers of one request within a time budget."""

    def __init__(self, project_id: int, drafts: Iterable[Draft]) -> None:
        """Load the registered schemas of the nodes and tools of these drafts."""
        self._until = thread_time() + JUDGING_SECONDS
        nodes = {name for draft in drafts for name in _names_of(draft)}
        self._registered = schemas_for(project_id, nodes) if nodes else {}

    def judge(self, draft: Draft) -> tuple[Draft, SchemaVerdict | None]:
        """Return the verdict on a draft's answer; None if nothing is expected of it.

        Raises UncheckedError.
        """
        if not draft.is_open:
            return draft, None
        if not draft.answer.calls:
            return self._judge_text(draft)
        verdicts = [(call, *self._judge_call(draft, call)) for call in draft.answer.calls]
        wrong = [entry for entry in verdicts if entry[2].error_type is not None]
        call, expected, verdict = next(iter(wrong or verdicts))
        # The preview shows the call that failed.
        answer = draft.answer._replace(calls=(call,), text=None)
        return _with_schema_names(replace(draft, answer=answer), expected), verdict

    def lacks_answer(self, draft: Draft) -> bool:
        """Whether a successful call should have an answer and the telemetry has none."""
        is_silent = draft.kind is None and not (draft.answer.is_known or draft.is_error)
        is_silent = is_silent and "parse_error_type" not in draft.fields
        return is_silent and self._text_expectation(draft) is not None

    def _judge_text(self, draft: Draft) -> tuple[Draft, SchemaVerdict | None]:
        expected = self._text_expectation(draft)
        if not draft.has_failed and (expected is None or not draft.answer.is_known):
            return draft, None
        expected = expected or ANY_VALUE
        verdict = self._within_budget(draft.answer.text or "", draft, expected)
        return _with_schema_names(draft, expected), verdict

    def _text_expectation(self, draft: Draft) -> ExpectedAnswer | None:
        if (expected := self._registered_for(draft.node)) is not None:
            return expected
        if (schema := _compile_request_schema(draft.answer_schema)) is not None:
            return ExpectedAnswer(schema, schema.title)
        return ANY_VALUE if draft.expects_json else None

    def _judge_call(self, draft: Draft, call: CalledTool) -> tuple[ExpectedAnswer, SchemaVerdict]:
        expected = self._call_expectation(draft, call)
        text = call.arguments if call.arguments.strip() else NO_ARGUMENTS
        verdict = self._within_budget(text, draft, expected)
        if verdict.error_type and ending_of(draft.finish_reason) in CUT:
            # Arguments sent as an object parse even if they were cut off.
            verdict = replace(verdict, error_type=ParseErrorType.TRUNCATED)
        return expected, verdict

    def _call_expectation(self, draft: Draft, call: CalledTool) -> ExpectedAnswer:
        if (schema := _compile_request_schema(draft.tools.get(call.name or ""))) is not None:
            return ExpectedAnswer(schema, call.name)
        if (registered := self._registered_for(slug(call.name) or "")) is not None:
            return registered
        expected = self._registered_for(draft.node)
        return expected if expected is not None and _is_answer(call, expected) else ANY_VALUE

    def _registered_for(self, name: str) -> ExpectedAnswer | None:
        registered: tuple[AgentSchema, CompiledSchema] | None = self._registered.get(name)
        if registered is None:
            return None
        row, schema = registered
        return ExpectedAnswer(schema, schema.title or row.node, row.version)

    def _within_budget(self, text: str, draft: Draft, expected: ExpectedAnswer) -> SchemaVerdict:
        if thread_time() > self._until:
            raise UncheckedError(UncheckedError.__doc__)
        try:
            return judge(text, draft.verdict_reason, expected.schema)
        except OverBudgetError as error:
            raise UncheckedError(UncheckedError.__doc__) from error


def _names_of(draft: Draft) -> Iterator[str]:
    yield draft.node
    for call in draft.answer.calls:
        if (name := slug(call.name)) is not None:
            yield name


def _with_schema_names(draft: Draft, expected: ExpectedAnswer) -> Draft:
    """Return the draft with the name of the checked schema, unless the agent named its own."""
    names = {"schema": expected.name, "schema_version": expected.version}
    known_names = {key: value for key, value in names.items() if value is not None}
    return replace(draft, fields={**known_names, **draft.fields}) if known_names else draft


def _is_answer(call: CalledTool, expected: ExpectedAnswer) -> bool:
    """Whether a call is the answer of its node, rather than an intermediate tool."""
    if expected.schema is None:
        return False
    if slug(call.name) == slug(expected.schema.title) is not None:
        return True
    try:
        value = jiter.from_json(call.arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    keys = value if isinstance(value, dict) else ()
    return any(f"/properties/{key}" in expected.schema.nodes for key in keys)


def _compile_request_schema(document: Any) -> CompiledSchema | None:  # noqa: ANN401 - any JSON
    """Compile a schema from a request; None if it cannot be checked."""
    if not isinstance(document, dict):
        return None
    _, fault = clean_json(document, MAX_NODES, MAX_DEPTH)
    return _compile_or_none(json.dumps(document)) if fault is None else None


@lru_cache(maxsize=256)
def _compile_or_none(text: str) -> CompiledSchema | None:
    if len(text) > MAX_BYTES:
        return None
    try:
        return read_schema(json.loads(text), is_ours=False)
    except SchemaFaultError:
        return None
