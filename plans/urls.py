"""Addresses of the plans app."""

from django.urls import URLPattern, URLResolver, path

from plans.api.contract import PayloadCheckView, ResultsCheckView
from plans.api.runs import CancelRunView, RunsView, RunView

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/plans/runs", RunsView.as_view(), name="api_plans_runs"),
    path("api/v1/plans/runs/<uuid:run_id>", RunView.as_view(), name="api_plans_run"),
    path(
        "api/v1/plans/runs/<uuid:run_id>/cancel",
        CancelRunView.as_view(),
        name="api_plans_run_cancel",
    ),
    path(
        "api/v1/contract/payload",
        PayloadCheckView.as_view(),
        name="api_contract_payload",
    ),
    path(
        "api/v1/contract/results",
        ResultsCheckView.as_view(),
        name="api_contract_results",
    ),
]
