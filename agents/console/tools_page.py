"""The tools page: what steps can call, where it comes from, and what the project allows."""

import json
from collections.abc import Mapping

from django.contrib import messages
from django.db.models import Aggregate, Count, DurationField, F, Max, Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from agents.badges import Badge
from diagnostics.web.pages import (
    ConsoleRequest,
    member_action,
    member_page,
    require_administrator,
    respond,
)
from plans.models.run import Run, RunStep
from plans.tools.registry import ListedTool, find_tool, list_servers, list_tools, set_allowed

SCHEMA_SHOWN = 4_000
MOST_TOOLS = 200
SERVER_BADGES: dict[str, Badge] = {
    "ok": ("good", "answers"),
    "failing": ("bad", "failing"),
    "not_asked": ("quiet", "not asked yet"),
}


LATEST_RUNS = 500
"""The number of plan runs whose steps are counted; it bounds the cost of the page."""


class DurationP95(Aggregate):
    template = "percentile_cont(0.95) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


def tool_use(project_id: int) -> list[Mapping[str, object]]:
    """Return the tools that the latest plan runs called, by failed calls, then by calls."""
    latest = Run.objects.filter(project=project_id).order_by("-id").values("id")[:LATEST_RUNS]
    called_steps = RunStep.objects.filter(run__in=latest, started_at__isnull=False)
    rows = (
        called_steps.exclude(tool=None)
        .order_by()
        .values(name=F("tool"))
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=Q(ok=False)),
            p95=DurationP95(F("ended_at") - F("started_at")),
            last_at=Max("started_at"),
        )
    )
    return [*rows.order_by("-failed", "-calls", "name")[:MOST_TOOLS]]


@member_page
def tools(request: ConsoleRequest) -> HttpResponse:
    known = list_tools(request.project.pk)
    names = {listed.tool.name for listed in known}
    context = {
        "rows": [_row(listed) for listed in known[:MOST_TOOLS]],
        "left_out": max(len(known) - MOST_TOOLS, 0),
        "total": len(known),
        "denied": sum(not listed.allowed for listed in known),
        "servers": [
            {"server": server, "badge": SERVER_BADGES[server.state]}
            for server in list_servers(known)
        ],
        "uses": [
            {"use": use, "is_known": use["name"] in names} for use in tool_use(request.project.pk)
        ],
        "counted_runs": LATEST_RUNS,
        "section": "tools",
    }
    return respond(request, "tools/tools", context, "Tools")


@member_action
def allow_tool(request: ConsoleRequest) -> HttpResponse:
    """Let the project call a tool, or not; only its admins may say so."""
    require_administrator(request)
    tool = find_tool(request.POST.get("tool", ""))
    if tool is None:
        raise Http404
    allowed = request.POST.get("allowed") == "yes"
    set_allowed(request.project.pk, tool.name, allowed=allowed, by=request.user)
    words = "may be called" if allowed else "is not called any more"
    messages.success(request, f"{tool.name} {words} in this project.")
    return redirect("tools")


def _row(listed: ListedTool) -> Mapping[str, object]:
    tool = listed.tool
    schema = tool.schema()
    properties = schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    required = schema.get("required") or []
    arguments = [str(name) if name in required else f"{name}?" for name in names]
    repeated = "repeatable" if tool.idempotent else "changes things"
    return {
        "tool": tool,
        "allowed": listed.allowed,
        "fields": ", ".join(arguments),
        "schema": json.dumps(schema, indent=2, ensure_ascii=False)[:SCHEMA_SHOWN],
        "repeats": repeated if tool.side_effects else "read-only",
    }
