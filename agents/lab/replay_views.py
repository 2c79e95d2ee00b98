"""Replay: parse a failure's stored samples with another schema or other settings."""

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpResponse

from agents.lab.parse_lab import Settings
from agents.lab.samples import (
    PASTED,
    Replay,
    UnknownTargetError,
    describe_refusal,
    find_target,
    key_for,
    read_pasted,
    replay_group,
    targets_of,
)
from diagnostics import clock
from diagnostics.failures.counts import GroupQuestion, read_question
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.views import failure_url
from diagnostics.failures.wording import title_of
from diagnostics.ingest.schemas import SchemaFaultError
from diagnostics.selection.selection import Selection
from diagnostics.web.access import ConsoleRequest, member_form
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import respond

SHOWN_ROWS = 50
LONGEST_KEY = 100
KEPT = ("target", "recover", "lenient", "asked")


@member_form
def replay(request: ConsoleRequest, group_id: int) -> HttpResponse:
    """Show what would have been recovered; a schema is pasted by POST and not stored."""
    groups = FailureGroup.objects.filter(project=request.project)
    group = groups.filter(pk=group_id).first()
    if group is None:
        raise Http404
    selection = read_filters(request)
    question, notice = read_question(selection, clock.now())
    data = request.POST if request.method == "POST" else request.GET
    key = data.get("target") or key_for(request.project.pk, group.schema, group.node)
    settings = _settings(data)
    result, fault = _replay(request, group, question, selection, key, settings)
    context = {
        **filter_frame(request, selection, export=None, kept=KEPT),
        "group": group,
        "title": title_of(group.kind, group.error_type, group.pointer, group.detail, group.node),
        "url": failure_url(group.pk, selection.query()),
        "key": key[:LONGEST_KEY],
        "settings": settings,
        "pasted": data.get("pasted", ""),
        "targets": targets_of(request.project.pk),
        "replay": result,
        "rows": result.rows[:SHOWN_ROWS] if result else [],
        "left_out": max(len(result.rows) - SHOWN_ROWS, 0) if result else 0,
        "fault": fault,
        "notice": notice,
        "section": "failures",
    }
    return respond(request, "lab/replay", context, f"Replay · {context['title']}")


def _settings(data: Mapping[str, str]) -> Settings:
    """Read the settings; both are on until the form was submitted."""
    if data.get("asked") != "1":
        return Settings()
    return Settings(data.get("recover") == "1", data.get("lenient") == "1")


def _replay(
    request: ConsoleRequest,
    group: FailureGroup,
    question: GroupQuestion,
    selection: Selection,
    key: str,
    settings: Settings,
) -> tuple[Replay | None, str]:
    pasted: Any = None
    try:
        if key == PASTED:
            pasted = read_pasted(request.POST.get("pasted", ""))
        target = find_target(request.project.pk, key, pasted)
    except (SchemaFaultError, UnknownTargetError) as error:
        return None, describe_refusal(error)
    window = (question.begin, question.end)
    return replay_group(group, *window, target, settings, selection), ""
