"""Fix patterns learned from recovered runs, and decisions about them."""

from collections.abc import Mapping, Sequence

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from agents.fix_patterns.models import FixPattern
from agents.fix_patterns.status import MAX_HINTS, NEEDED_SUCCESSES, PatternMode, PatternStatus
from agents.fix_patterns.store import DECISIONS, known_patterns, policy_of, set_mode
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.views import return_url
from diagnostics.store.fingerprints import normalise_pointer
from diagnostics.web.charts.scales import rate_scale
from diagnostics.web.pages import (
    ConsoleRequest,
    member_action,
    member_page,
    require_actor,
    require_administrator,
    respond,
)

AXIS_WIDTH = 150
MODES: Mapping[PatternMode, str] = {
    PatternMode.AUTO: f"A fix that works in {NEEDED_SUCCESSES} distinct runs becomes a hint.",
    PatternMode.APPROVE: f"After {NEEDED_SUCCESSES} distinct runs, an operator decides.",
    PatternMode.OFF: "No patterns are learned and no hints are added.",
}


@member_page
def fix_patterns(request: ConsoleRequest) -> HttpResponse:
    policy = policy_of(request.project.pk)
    rows = known_patterns(request.project.pk, policy)
    context = {
        "rows": rows,
        "active": sum(row.standing is PatternStatus.ACTIVE for row in rows),
        "rules": policy,
        "modes": MODES.items(),
        "meaning": MODES[policy.mode],
        "most_hints": MAX_HINTS,
        # Always the whole axis, so that shares can be compared across rows.
        "scale": rate_scale([1.0], AXIS_WIDTH),
        "section": "fix_patterns",
    }
    return respond(request, "fix_patterns/list", context, "Fix patterns")


@member_action
def decide_pattern(request: ConsoleRequest, pattern_id: int, verb: str) -> HttpResponse:
    if verb not in DECISIONS:
        raise Http404
    row = get_object_or_404(FixPattern, project=request.project, pk=pattern_id)
    require_actor(request)
    DECISIONS[verb](row, request.user)
    # To the failure that the form was on, or to all patterns.
    return redirect(return_url(request) if request.POST.get("back") else "fix_patterns")


@member_action
def set_policy(request: ConsoleRequest) -> HttpResponse:
    require_administrator(request)
    mode = request.POST.get("mode", "")
    if mode in list(PatternMode):
        set_mode(request.project.pk, PatternMode(mode), request.user)
    else:
        messages.error(request, "Choose off, auto or approve.")
    return redirect("fix_patterns")


def patterns_of(project_id: int, group: FailureGroup) -> Sequence[FixPattern]:
    """Return the patterns of the same schema, type of error and place."""
    if group.kind != "parse_invalid" or not group.schema:
        return []
    same = (group.schema, group.error_type, group.pointer)
    return [
        row
        for row in known_patterns(project_id, policy_of(project_id))
        if (row.schema, row.error_class, normalise_pointer(row.pointer)) == same
    ]
