"""Lists of the API as files for people: the same rows, under the filters of the page."""

from datetime import UTC
from itertools import chain
from typing import cast

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.views import APIView

from diagnostics import clock
from diagnostics.accounts.authentication import MemberAuthentication
from diagnostics.alerting.incident_api import IncidentsView
from diagnostics.console.api import SeriesView
from diagnostics.console.event_api import EventsView
from diagnostics.failures.api import FailuresView
from diagnostics.failures.views import TABS
from diagnostics.rest.exporting import BYTE_ORDER_MARK
from diagnostics.store.kept_answers import limited_wait
from diagnostics.web.pages import ConsoleRequest, member_page


class ConsoleFailuresView(FailuresView):
    """The failures of the API, in the states of a tab of the page."""

    states = TABS


class ConsoleIncidentsView(IncidentsView):
    """The incidents of the API, with all that are open, as the page has them."""

    has_all_open = True


LISTS: dict[str, type[APIView]] = {
    "events": EventsView,
    "failures": ConsoleFailuresView,
    "incidents": ConsoleIncidentsView,
    "series": SeriesView,
}
ENDINGS = frozenset({"csv", "ndjson"})


@member_page
def export(request: ConsoleRequest, name: str, ending: str) -> HttpResponse:
    """Stream a list as a file; an unknown list or ending is not found."""
    listed = LISTS.get(name)
    if listed is None:
        raise Http404
    return stream_list(request, listed, name, ending)


def stream_list(
    request: ConsoleRequest, listed: type[APIView], name: str, ending: str
) -> HttpResponse:
    """Answer as the API does, for the project that the member has chosen."""
    if ending not in ENDINGS:
        raise Http404
    params = request.GET.copy()
    params["format"] = ending
    request.GET = params  # type: ignore[assignment] # a QueryDict that was not frozen
    view = listed.as_view(authentication_classes=(MemberAuthentication,), permission_classes=())
    # A file cannot be completed afterwards, as a page is.
    with limited_wait(None):
        answer: HttpResponseBase = view(request)
    if answer.status_code == 200:
        day = clock.now().astimezone(UTC).strftime("%Y-%m-%d")
        named = f'attachment; filename="failsoft-{name}-{day}.{ending}"'
        answer["Content-Disposition"] = named
        if ending == "csv" and isinstance(answer, StreamingHttpResponse):
            answer.streaming_content = chain([BYTE_ORDER_MARK], iter(answer))
    # Streamed, yet with headers and a status: all that `member_view` asks of an answer.
    return cast("HttpResponse", answer)
