"""What a member may do to a run: cancel it, repeat it, decide what nobody knows."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agents.views.run_page import find_run, read_number
from diagnostics.core.wording import plural
from diagnostics.views.access import ConsoleRequest, may_act, member_view
from plans.models import Run
from plans.rerunning import RerunRefusedError
from plans.rerunning import rerun as repeat
from plans.resolving import Verdict, resolve_steps
from plans.submitting import cancel_run

MOST_AT_ONCE = 100


@require_POST
@member_view
def cancel(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Ask for the run to end before its next tool call."""
    run = _mine(request, run_id)
    if not cancel_run(run.project_id, run.pk):
        messages.info(request, "The run had ended before it could be cancelled.")
    return redirect("run", run.pk)


@require_POST
@member_view
def rerun(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Queue a new run of the plan, from its beginning or from one of its steps."""
    run = _mine(request, run_id)
    first = read_number(request.POST.get("from"))
    try:
        made = repeat(run.pk, first, by=request.user.get_username())
    except RerunRefusedError as error:
        messages.error(request, f"It was not run again. {error}")
        return redirect("run", run.pk)
    return redirect("run", made.pk)


@require_POST
@member_view
def resolve(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Settle the marked steps by the member's word; the run goes on."""
    run = _mine(request, run_id)
    given = (read_number(text) for text in request.POST.getlist("position"))
    chosen = [(run.pk, at) for at in given if at is not None][:MOST_AT_ONCE]
    verdict = request.POST.get("verdict", "")
    if not chosen or verdict not in Verdict.values:
        messages.error(request, "Nothing was decided: mark at least one step.")
        return redirect("run", run.pk)
    found = resolve_steps(chosen, verdict, request.user.get_username())
    if found.refused:
        messages.error(request, f"Nothing was decided. {found.refused[0][2]}")
    else:
        told = f"{plural(len(found.done), 'step')} decided; the run goes on."
        messages.success(request, told)
    return redirect("run", run.pk)


def _mine(request: ConsoleRequest, run_id: UUID) -> Run:
    """The run, if it is of the project; a viewer may look, but not act."""
    run = find_run(request, run_id)
    if not may_act(request):
        raise PermissionDenied
    return run
