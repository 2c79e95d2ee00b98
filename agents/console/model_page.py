"""The page of one model: why it fails, since when, what retries bring, its breakers."""

from django.http import Http404, HttpResponse

from agents.breakers.models import Breaker
from agents.breakers.views import by_state, newest_transitions
from agents.goals.state import NODES
from agents.llm.models import LanguageModel
from diagnostics import clock
from diagnostics.console.model_story import APPLIED_FIELDS, model_story, narrowed_to
from diagnostics.queries.models import is_known_model
from diagnostics.queries.series import covered_by
from diagnostics.selection.conditions import known_values
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_page, respond

MOST_TRANSITIONS = 10


@member_page
def model(request: ConsoleRequest, provider: str | None, name: str | None) -> HttpResponse:
    """Show one model of one provider; null where agents did not say."""
    # As it is registered here, if planners of this project may use it.
    served = (
        LanguageModel.objects.filter(project=request.project, provider__name=provider, name=name)
        .select_related("provider")
        .first()
    )
    if served is None and not is_known_model(request.project.pk, provider, name):
        raise Http404
    selection = read_filters(request)
    now = clock.now()
    of_model = {"project": request.project, "provider": provider or "", "model": name or ""}
    context = {
        **filter_frame(
            request,
            selection,
            choices={**known_values(request.project.pk), "provider": (), "model": ()},
            applies=APPLIED_FIELDS,
            about=narrowed_to(selection, provider, name),
            covers=covered_by(selection, now),
        ),
        **model_story(request.project.pk, selection, provider, name, now),
        "provider_name": provider,
        "model_name": name,
        "served": served,
        "breakers": by_state(Breaker.objects.filter(**of_model)),
        "transitions": newest_transitions(MOST_TRANSITIONS, **of_model),
        "nodes": sorted(set(NODES.values())),
        "section": "models",
    }
    return respond(request, "models/model", context, name or "unknown model")
