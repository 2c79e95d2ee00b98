"""The pages of the lab: parse a pasted answer, or a failure's samples again. Nothing is stored."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404

from agents.lab import samples
from agents.lab.parse_lab import ParseTarget, Reading, Settings, read_answer
from diagnostics import clock
from diagnostics.failures.counts import read_question
from diagnostics.failures.excerpt import Piece, mark_line
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.views import failure_url
from diagnostics.failures.wording import title_of
from diagnostics.ingest.schemas import SchemaFaultError
from diagnostics.redaction.redactor import redact_found
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_form, respond
from failsoft.events import Coercion, Repair, ValidationErrorItem
from failsoft.parsing.tracing import MAX_BYTES
from failsoft.redaction.pipeline import cut

LINES_AROUND = 2
MOST_LINES = 160
MOST_NOTES = 60
LONGEST_LINE = 240
LEFT_OF_NOTE = 60
LOSS = {True: "lossless", False: "lossy"}


@dataclass(frozen=True, slots=True)
class Note:
    """A message about a position; line and column are 1-based, in code points."""

    line: int
    column: int
    kind: str
    text: str
    is_fault: bool = False


@dataclass(frozen=True, slots=True)
class NotedLine:
    """One line of the text; `gap` lines before it are not shown."""

    number: int
    pieces: tuple[Piece, ...]
    caret_indent: str | None
    notes: tuple[Note, ...]
    gap: int

    @property
    def is_faulty(self) -> bool:
        return any(note.is_fault for note in self.notes)


@dataclass(frozen=True, slots=True)
class AnnotatedText:
    """The lines that are shown, how many follow, and how many notes are not shown."""

    lines: tuple[NotedLine, ...]
    below: int
    left_out: int


def annotate(text: str, notes: Sequence[Note]) -> AnnotatedText:
    """Return a text with notes; without any, its beginning."""
    rows = text.split("\n")
    shown = sorted(notes, key=lambda note: (note.line, note.column))[:MOST_NOTES]
    numbers = sorted(set(_numbers(len(rows), shown)))[:MOST_LINES]
    lines, before = [], 0
    for number in numbers:
        own = tuple(note for note in shown if note.line == number)
        columns = [note.column for note in own]
        marked = mark_line(rows[number - 1], columns, LONGEST_LINE, LEFT_OF_NOTE)
        lines.append(NotedLine(number, *marked, own, number - before - 1))
        before = number
    listed = sum(len(line.notes) for line in lines)
    return AnnotatedText(tuple(lines), len(rows) - before, len(notes) - listed)


def _numbers(rows: int, notes: Sequence[Note]) -> Iterator[int]:
    if not notes or rows <= MOST_LINES // 4:
        yield from range(1, min(rows, MOST_LINES) + 1)
        return
    for note in notes:
        first = max(note.line - LINES_AROUND, 1)
        yield from range(first, min(note.line + LINES_AROUND, rows) + 1)


SHOWN_VALUE = 16_384
ECHOED_BYTES = 32_768
"""A longer text is parsed, but not shown in the form again."""
LONGEST_KEY = 100
FINISH_REASONS = ("stop", "length", "content_filter")


@dataclass(frozen=True, slots=True)
class LabForm:
    """The submitted form; `other` is None unless two settings are compared."""

    text: str = ""
    finish_reason: str = ""
    schema: str = samples.NONE
    pasted: str = ""
    settings: Settings = field(default_factory=Settings)
    other_schema: str = samples.NONE
    other: Settings | None = None


@member_form
def lab(request: ConsoleRequest) -> HttpResponse:
    form = _read_form(request)
    text, kinds, fault = _mask(form)
    readings = list[Mapping[str, Any]]()
    if text:
        try:
            pairs = [(form.schema, form.settings)]
            if form.other is not None:
                pairs.append((form.other_schema, form.other))
            readings = [_reading_context(request.project.pk, form, text, *pair) for pair in pairs]
        except (SchemaFaultError, samples.UnknownTargetError) as error:
            fault = samples.describe_refusal(error)
    context = {
        "asked": form,
        "echo": text if len(text.encode()) <= ECHOED_BYTES else "",
        "size": len(text),
        "masked": kinds,
        "fault": fault,
        "shown": readings,
        "targets": samples.targets_of(request.project.pk),
        "finish_reasons": FINISH_REASONS,
        "section": "lab",
    }
    return respond(request, "lab/lab", context, "Parse lab")


def _mask(form: LabForm) -> tuple[str, Sequence[str], str]:
    if len(form.text.encode("utf-8", "replace")) > MAX_BYTES:
        return "", (), "The text is larger than 1 MiB."
    redacted = redact_found(form.text)
    return redacted.text, sorted(redacted.found), ""


def _read_form(request: ConsoleRequest) -> LabForm:
    if request.method != "POST":
        return _of_event(request)
    data = request.POST
    is_compared = data.get("compare") == "1"
    return LabForm(
        text=data.get("text", "").replace("\r\n", "\n"),
        finish_reason=data.get("finish_reason", "")[:LONGEST_KEY],
        schema=data.get("schema", samples.NONE)[:LONGEST_KEY],
        pasted=data.get("pasted", ""),
        settings=_settings(data),
        other_schema=data.get("schema_b", samples.NONE)[:LONGEST_KEY],
        other=_settings(data, "_b") if is_compared else None,
    )


def _settings(data: Mapping[str, str], suffix: str = "") -> Settings:
    return Settings(data.get(f"recover{suffix}") == "1", data.get(f"lenient{suffix}") == "1")


def _of_event(request: ConsoleRequest) -> LabForm:
    event_id = request.GET.get("event", "")
    if not event_id:
        return LabForm()
    try:
        sample = samples.event_of(request.project.pk, str(UUID(event_id)))
    except ValueError as error:
        raise Http404 from error
    if sample is None:
        raise Http404
    event, payload = sample
    key = samples.key_for(request.project.pk, event.schema, event.node)
    text, finish_reason = payload.raw_output_preview or "", event.finish_reason or ""
    return LabForm(text, finish_reason, schema=key, other_schema=key)


def _reading_context(
    project_id: int, form: LabForm, text: str, key: str, settings: Settings
) -> Mapping[str, Any]:
    target = _target(project_id, key, form.pasted)
    reading = read_answer(text, target, settings, form.finish_reason or None)
    value = json.dumps(reading.value, indent=2, ensure_ascii=False)
    return {
        "label": target.label,
        "settings": settings,
        "reading": reading,
        "noted": annotate(text, _notes(reading)),
        "value": cut(value, SHOWN_VALUE),
    }


def _target(project_id: int, key: str, pasted: str) -> ParseTarget:
    return samples.find_target(
        project_id, key, samples.read_pasted(pasted) if key == samples.PASTED else None
    )


def _notes(reading: Reading) -> list[Note]:
    findings: list[tuple[ValidationErrorItem | Repair | Coercion, str, str, bool]] = [
        *((item, item.code or "error", item.message, True) for item in reading.errors),
        *((i, i.kind, f"repaired, {LOSS[i.lossless]}", False) for i in reading.repairs),
        *((i, i.kind, f"coerced at {i.path}", False) for i in reading.coerced),
    ]
    return [
        Note(item.line, item.column or 1, kind, text, is_fault)
        for item, kind, text, is_fault in findings
        if item.line
    ]


SHOWN_ROWS = 50
KEPT = ("target", "recover", "lenient", "asked")


@member_form
def replay(request: ConsoleRequest, group_id: int) -> HttpResponse:
    """Show what would have been recovered; a schema is pasted by POST and not stored."""
    group = get_object_or_404(FailureGroup, project=request.project, pk=group_id)
    selection = read_filters(request)
    question, notice = read_question(selection, clock.now())
    data = request.POST if request.method == "POST" else request.GET
    key = data.get("target") or samples.key_for(request.project.pk, group.schema, group.node)
    # Both are on until the form was submitted.
    settings = _settings(data) if data.get("asked") == "1" else Settings()
    result, fault = None, ""
    try:
        target = _target(request.project.pk, key, request.POST.get("pasted", ""))
        window = (question.begin, question.end)
        result = samples.replay_group(group, *window, target, settings, selection)
    except (SchemaFaultError, samples.UnknownTargetError) as error:
        fault = samples.describe_refusal(error)
    context = {
        **filter_frame(request, selection, export=None, kept=KEPT),
        "group": group,
        "title": title_of(group.kind, group.error_type, group.pointer, group.detail, group.node),
        "url": failure_url(group.pk, selection.query()),
        "key": key[:LONGEST_KEY],
        "settings": settings,
        "pasted": data.get("pasted", ""),
        "targets": samples.targets_of(request.project.pk),
        "replay": result,
        "rows": result.rows[:SHOWN_ROWS] if result else [],
        "left_out": max(len(result.rows) - SHOWN_ROWS, 0) if result else 0,
        "fault": fault,
        "notice": notice,
        "section": "failures",
    }
    return respond(request, "lab/replay", context, f"Replay · {context['title']}")
