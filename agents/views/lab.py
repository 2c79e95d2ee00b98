"""The parse lab: paste an answer, see what the parser makes of it. Nothing of it is kept."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods

from agents.core.lab import Reading, Settings, read_answer
from agents.lab_reading import (
    NONE,
    PASTED,
    UnknownTargetError,
    event_of,
    find_target,
    key_for,
    read_pasted,
    targets_of,
)
from diagnostics.core.agent_schemas import SchemaFaultError
from diagnostics.core.annotated import Annotated, Note, annotate
from diagnostics.core.preview import cut
from diagnostics.core.recovery.bounds import MAX_BYTES
from diagnostics.redaction.redacting import redact_found
from diagnostics.redaction.rules import own_rules_of
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.pages import respond

SHOWN_VALUE = 16_384
ECHOED_BYTES = 32_768
"""A longer text is read, and not written into its box again."""
LONGEST_KEY = 100
FINISH_REASONS = ("stop", "length", "content_filter")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the form says; the second settings are None unless two are compared."""

    text: str
    finish_reason: str
    schema: str
    pasted: str
    settings: Settings
    other_schema: str
    other: Settings | None


@dataclass(frozen=True, slots=True)
class Shown:
    """One reading as it is shown."""

    label: str
    settings: Settings
    reading: Reading
    noted: Annotated
    value: str


@require_http_methods(["GET", "HEAD", "POST"])
@member_view
def lab(request: ConsoleRequest) -> HttpResponse:
    """Show the form, and the readings of what was sent or of a stored failure."""
    asked = _asked(request)
    masked, shown, fault = _masked(request, asked), list[Shown](), ""
    if masked.text:
        try:
            shown = _read(request.project.pk, asked, masked.text)
        except (SchemaFaultError, UnknownTargetError) as error:
            fault = _told(error)
    context = {
        "asked": asked,
        "echo": masked.text if len(masked.text.encode()) <= ECHOED_BYTES else "",
        "size": len(masked.text),
        "masked": masked.kinds,
        "fault": fault or masked.fault,
        "shown": shown,
        "targets": targets_of(request.project.pk),
        "finish_reasons": FINISH_REASONS,
        "base_url": request.build_absolute_uri("/").rstrip("/"),
        "section": "lab",
    }
    return respond(request, "lab/lab", context)


@dataclass(frozen=True, slots=True)
class Masked:
    """The text as it is read, and what was masked in it."""

    text: str
    kinds: Sequence[str] = ()
    fault: str = ""


def _masked(request: ConsoleRequest, asked: Asked) -> Masked:
    """Mask secrets first: what is shown is what was read (X-17)."""
    if len(asked.text.encode("utf-8", "replace")) > MAX_BYTES:
        return Masked("", fault="The text is larger than 1 MiB.")
    found = redact_found(asked.text, own=own_rules_of(request.project.pk))
    return Masked(found.text, sorted(found.found))


def _asked(request: ConsoleRequest) -> Asked:
    if request.method != "POST":
        return _of_event(request)
    sent = request.POST
    is_compared = sent.get("compare") == "1"
    return Asked(
        text=sent.get("text", "").replace("\r\n", "\n"),
        finish_reason=sent.get("finish_reason", "")[:LONGEST_KEY],
        schema=sent.get("schema", NONE)[:LONGEST_KEY],
        pasted=sent.get("pasted", ""),
        settings=_settings(sent, ""),
        other_schema=sent.get("schema_b", NONE)[:LONGEST_KEY],
        other=_settings(sent, "_b") if is_compared else None,
    )


def _settings(sent: Mapping[str, str], which: str) -> Settings:
    return Settings(sent.get(f"recover{which}") == "1", sent.get(f"lenient{which}") == "1")


def _of_event(request: ConsoleRequest) -> Asked:
    """Fill the form with a stored failure; 404 for one of another project."""
    empty = Asked("", "", NONE, "", Settings(), NONE, None)
    wanted = request.GET.get("event", "")
    if not wanted:
        return empty
    try:
        found = event_of(request.project.pk, str(UUID(wanted)))
    except ValueError as error:
        raise Http404 from error
    if found is None:
        raise Http404
    event, payload = found
    key = key_for(request.project.pk, event.schema, event.node)
    return Asked(
        payload.raw_output_preview or "",
        event.finish_reason or "",
        key,
        "",
        Settings(),
        key,
        None,
    )


def _read(project_id: int, asked: Asked, text: str) -> list[Shown]:
    pairs = [(asked.schema, asked.settings)]
    if asked.other is not None:
        pairs.append((asked.other_schema, asked.other))
    return [_shown(project_id, asked, text, *pair) for pair in pairs]


def _shown(project_id: int, asked: Asked, text: str, key: str, settings: Settings) -> Shown:
    pasted = read_pasted(asked.pasted) if key == PASTED else None
    target = find_target(project_id, key, pasted)
    reading = read_answer(text, target, settings, asked.finish_reason or None)
    noted = annotate(text, list(_notes(reading)))
    value = json.dumps(reading.value, indent=2, ensure_ascii=False)
    return Shown(target.label, settings, reading, noted, cut(value, SHOWN_VALUE))


def _notes(reading: Reading) -> list[Note]:
    faults = [
        Note(item.line, item.column or 1, item.code or "error", item.message, True)
        for item in reading.errors
        if item.line
    ]
    repairs = [
        Note(item.line, item.column or 1, item.kind, _repair_words(item.lossless))
        for item in reading.repairs
        if item.line
    ]
    coerced = [
        Note(item.line, item.column or 1, item.kind, f"taken leniently at {item.path}")
        for item in reading.coerced
        if item.line
    ]
    return [*faults, *repairs, *coerced]


def _repair_words(lossless: bool) -> str:
    return "repaired, nothing lost" if lossless else "repaired, something left out"


def _told(error: ValueError) -> str:
    if isinstance(error, SchemaFaultError):
        where = error.path or "the schema"
        return f"The pasted schema is refused at {where}: {error.message}."
    return f"{str(error).capitalize()}."
