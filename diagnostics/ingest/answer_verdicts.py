"""Answers of models, each checked within a time budget against its expected schema.

1. A tool call is checked against the schema its request gave for the tool, else against
   the one registered under the tool's name, else against the one of the node, if the call is
   its answer: the tool is named like the schema's title, or the two share a property.
2. A text is checked against the schema of its node, else against the one in its request.
3. Of several calls the first invalid one decides.
4. Whatever was expected, an answer is invalid if there is nothing to use: no text and no call,
   thinking alone, cut off, withheld, a tool that was not offered, a call written as text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from time import thread_time
from typing import Any, NamedTuple

import jiter

from diagnostics.ingest.agent_schemas import COMPILED, schemas_for
from diagnostics.ingest.models import AgentSchema, SpanVerdict
from diagnostics.ingest.otlp.answers import CalledTool
from diagnostics.ingest.otlp.attributes import slug
from diagnostics.ingest.otlp.drafts import UNUSABLE, Draft
from diagnostics.ingest.schemas import CompiledSchema, OverBudgetError, SchemaVerdict, judge
from diagnostics.ingest.schemas.reading import MAX_BYTES, MAX_DEPTH, MAX_NODES
from failsoft.events import ParseErrorType, UncheckedReason, ValidationErrorItem
from failsoft.json_values import clean_json, escape_pointer
from failsoft.parsing.calls import call_markup
from failsoft.parsing.faults import Lines, ParseFault, RefusalCause
from failsoft.parsing.makers import CUT, FinishClass
from failsoft.parsing.thinking import block_at, reasoning_fault

# Of log records: a service that is not among them is noticed again by its next one.
MOST_RECENT = 1000
# Per request; further answers count as unchecked.
JUDGING_SECONDS = 1.0
NO_ARGUMENTS = "{}"
LONGEST_NAME = 200
# Tools whose names are compared with that of an unknown one: thousands would take seconds.
MOST_COMPARED = 200
# The types of an answer that may have no content.
NOTHING = frozenset({ParseErrorType.EMPTY_OUTPUT, ParseErrorType.TRUNCATED})
CUT_CALL = ValidationErrorItem(
    path="",
    code=ParseErrorType.TRUNCATED,
    message="expected whole arguments; the answer was cut off",
)


class ExpectedAnswer(NamedTuple):
    """The schema that an answer must have, and its name; None for any object or array."""

    schema: CompiledSchema | None
    name: str | None = None
    version: str | None = None


ANY_VALUE = ExpectedAnswer(None)


class AnswerVerdicts:
    """Checks the answers of one request within a time budget."""

    def __init__(self, project_id: int | None, drafts: Sequence[Draft]) -> None:
        """Load the registered schemas of the nodes and tools of these drafts.

        Without a project nothing is registered, and no database is needed.
        """
        self._project_id = project_id
        self._until = thread_time() + JUDGING_SECONDS
        self._registered: Mapping[str, AgentSchema] = {}
        self._expected: dict[str, ExpectedAnswer | None] = {}
        if project_id is not None:
            names = {draft.node for draft in drafts}
            called = (slug(call.name) for draft in drafts for call in draft.answer.calls)
            names.update(filter(None, called))
            self._registered = schemas_for(project_id, names) if names else {}

    def judge(self, draft: Draft) -> tuple[Draft, SchemaVerdict | None]:
        """Return the verdict on a draft's answer.

        It is None if nothing checked the answer; then the draft says why.
        """
        try:
            draft, verdict = self._judge(draft)
            if verdict is None and not draft.is_reported:
                draft = replace(draft, unchecked=self._missing(draft))
        except OverBudgetError:
            return replace(draft, unchecked=UncheckedReason.OVER_BUDGET), None
        return draft, verdict

    def _judge(self, draft: Draft) -> tuple[Draft, SchemaVerdict | None]:
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

    def _missing(self, draft: Draft) -> UncheckedReason | None:
        expected = self._text_expectation(draft)
        if _is_unread(draft, expected):
            return UncheckedReason.NO_SCHEMA
        is_expected = expected is not None
        # Calls of tools are checked without a schema, too.
        is_checked = is_expected or draft.ending is FinishClass.TOOL_CALLS
        # A log record was checked without the schema that its agent's node has.
        is_checked &= not (draft.is_of_agent and self._registered_for(draft.node))
        if is_checked and draft.fields.get("source") in self._log_sources:
            return None
        return UncheckedReason.NO_ANSWER if is_expected else UncheckedReason.NO_SCHEMA

    @cached_property
    def _log_sources(self) -> set[str | None]:
        return set() if self._project_id is None else log_sources(self._project_id)

    def _judge_text(self, draft: Draft) -> tuple[Draft, SchemaVerdict | None]:
        expected = self._text_expectation(draft)
        if expected is None:
            verdict = self._judge_free_text(draft)
        elif draft.answer.is_known or draft.has_failed:
            draft = _with_schema_names(draft, expected)
            verdict = self._within_budget(draft.answer.text or "", draft, expected)
        else:
            return draft, None
        spent = draft.fields.get("reasoning_tokens")
        if spent and draft.has_no_content and verdict and verdict.error_type in NOTHING:
            fault = reasoning_fault(draft.fields.get("output_tokens"), spent)
            return draft, replace(verdict, errors=(fault,))
        is_right = verdict is not None and verdict.error_type is None
        if is_right and expected is not None and expected.schema is not None:
            return draft, verdict
        if is_right and _is_unread(draft, expected):
            verdict = None
        return draft, _written_call(draft) or verdict

    def _judge_free_text(self, draft: Draft) -> SchemaVerdict | None:
        """Return why a text is unusable of which nothing is expected."""
        text = draft.answer.text or ""
        inner = text.strip()
        is_odd = draft.has_failed or draft.ending in CUT
        # Nothing, or perhaps a block of thinking alone.
        may_be_empty = not inner or inner[0] in "<[◁" or inner[-1] in ">]▷"
        if not (is_odd or may_be_empty):
            return None
        verdict = self._within_budget(text, draft, ANY_VALUE)
        is_empty = verdict.error_type == ParseErrorType.EMPTY_OUTPUT or _is_open_thinking(text)
        return verdict if verdict.error_type and (is_odd or is_empty) else None

    def _text_expectation(self, draft: Draft) -> ExpectedAnswer | None:
        if (expected := self._registered_for(draft.node)) is not None:
            return expected
        if (schema := self._compile(draft.answer_schema)) is not None:
            return ExpectedAnswer(schema, schema.title)
        return ANY_VALUE if draft.expects_json else None

    def _judge_call(self, draft: Draft, call: CalledTool) -> tuple[ExpectedAnswer, SchemaVerdict]:
        if self._is_late():
            raise OverBudgetError(OverBudgetError.__doc__)
        expected = self._call_expectation(draft, call)
        if draft.ending not in UNUSABLE and not _is_offered(draft, call):
            return expected, _unknown_tool(draft, call)
        text = call.arguments if call.arguments.strip() else NO_ARGUMENTS
        verdict = self._within_budget(text, draft, expected)
        if draft.ending in CUT and verdict.error_type:
            verdict = replace(verdict, error_type=ParseErrorType.TRUNCATED)
        elif draft.ending in CUT and call is draft.answer.calls[-1] and not call.is_text:
            # It parses even if it was cut off.
            verdict = SchemaVerdict(ParseErrorType.TRUNCATED, (CUT_CALL,))
        return expected, verdict

    def _call_expectation(self, draft: Draft, call: CalledTool) -> ExpectedAnswer:
        if (schema := self._compile(draft.tools.get(call.name))) is not None:
            return ExpectedAnswer(schema, (call.name or "")[:LONGEST_NAME] or None)
        if (registered := self._registered_for(slug(call.name) or "")) is not None:
            return registered
        expected = self._registered_for(draft.node)
        return expected if expected is not None and _is_answer(call, expected) else ANY_VALUE

    def _registered_for(self, name: str) -> ExpectedAnswer | None:
        if name not in self._registered:
            return None
        if name not in self._expected:
            row = self._registered[name]
            schema = COMPILED.read(json.dumps(row.json_schema), is_ours=True, is_late=self._is_late)
            self._expected[name] = (
                None
                if schema is None
                else ExpectedAnswer(schema, schema.title or row.node, row.version)
            )
        return self._expected[name]

    def _compile(self, document: Any) -> CompiledSchema | None:  # noqa: ANN401 - any JSON
        """Compile a schema from a request; None if it cannot be checked."""
        if not isinstance(document, dict):
            return None
        _, fault = clean_json(document, MAX_NODES, MAX_DEPTH)
        text = json.dumps(document) if fault is None else ""
        if not 0 < len(text) <= MAX_BYTES:
            return None
        return COMPILED.read(text, is_ours=False, is_late=self._is_late)

    def _within_budget(self, text: str, draft: Draft, expected: ExpectedAnswer) -> SchemaVerdict:
        # What is empty or has failed anyhow takes no time.
        if self._is_late() and text.strip() and not draft.has_failed:
            raise OverBudgetError(OverBudgetError.__doc__)
        return judge(text, draft.verdict_reason, expected.schema, is_late=self._is_late)

    def _is_late(self) -> bool:
        return thread_time() > self._until


def _is_unread(draft: Draft, expected: ExpectedAnswer | None) -> bool:
    """Whether the request has a schema that cannot be checked, and none is registered."""
    return draft.answer_schema is not None and (expected is None or expected.schema is None)


def _is_open_thinking(text: str) -> bool:
    """Whether a text begins with a block of thinking that nothing closes."""
    try:
        block_at(text, len(text) - len(text.lstrip()))
    except ParseFault:
        return True
    return False


def _written_call(draft: Draft) -> SchemaVerdict | None:
    """Return the fault of a tool call in the text of an answer to a request with tools."""
    text = draft.answer.text or ""
    at = call_markup(text) if draft.tools else None
    if at is None or _reads_strictly(text) is not None:
        return None
    line, column = Lines(text).place(at)
    fault = ValidationErrorItem(
        path="",
        code=RefusalCause.CALL_MARKUP,
        message="expected a tool call; this is one written as text",
        line=line,
        column=column,
    )
    return SchemaVerdict(ParseErrorType.NOT_JSON, (fault,))


def _is_offered(draft: Draft, call: CalledTool) -> bool:
    """Whether the request offered a tool, as far as its tools are told."""
    if not (call.name or "").strip():
        return call.name is None and not draft.tools
    return not draft.tools or call.name in draft.tools or None in draft.tools


def _unknown_tool(draft: Draft, call: CalledTool) -> SchemaVerdict:
    name = (call.name or "")[:LONGEST_NAME]
    offered = [tool for tool in draft.tools if tool is not None]
    nearest = get_close_matches(name, offered[:MOST_COMPARED], 1)
    hint = f"; the nearest is {nearest[0]}" if nearest else ""
    message = f"expected a tool that was offered, got {name or 'no name'}{hint}"
    fault = ValidationErrorItem(path="", code="tool_unknown", message=message)
    return SchemaVerdict(ParseErrorType.SCHEMA_INVALID, (fault,))


def log_sources(project_id: int) -> set[str | None]:
    """Return the services whose log records have recently carried answers: their spans do not."""
    rows = SpanVerdict.objects.filter(project_id=project_id).order_by("-pk")
    return set(rows.values_list("content__source", flat=True)[:MOST_RECENT])


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
    value = _reads_strictly(call.arguments)
    keys = value if isinstance(value, dict) else ()
    return any(f"/properties/{escape_pointer(key)}" in expected.schema.nodes for key in keys)


def _reads_strictly(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a JSON text; None for any other."""
    try:
        return jiter.from_json(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
