"""The address of the plain endpoint."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from bench.ingest.plain import PlainEventsView


def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [path("healthz", healthz), path("api/v1/events", PlainEventsView.as_view())]
