"""The list of goals as a file, under the filters of its page."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from agents.api.goals import GoalsView
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.exports import stream_list


@require_safe
@member_view
def export_goals(request: ConsoleRequest, ending: str) -> HttpResponse:
    """Stream goals, newest first."""
    return stream_list(request, GoalsView, "goals", ending)
