"""Addresses of the plans app."""

from django.urls import URLPattern, URLResolver, path, re_path

from plans.contract_api import ContractSchemaView, ContractView, PayloadCheckView, ResultsCheckView
from plans.runs.api import (
    CancelRunView,
    RerunView,
    ResolveStepView,
    RunResultsView,
    RunsView,
    RunView,
)
from plans.tools.api import ToolsView, ToolView

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/plans/runs", RunsView.as_view()),
    path("api/v1/plans/runs/<uuid:run_id>", RunView.as_view(), name="api_plans_run"),
    path("api/v1/plans/runs/<uuid:run_id>/results", RunResultsView.as_view()),
    path("api/v1/plans/runs/<uuid:run_id>/cancel", CancelRunView.as_view()),
    # Clients use both forms, with and without the slash.
    re_path(r"^api/v1/contract/?$", ContractView.as_view()),
    path(
        "api/v1/contract/<str:name>.schema.json",
        ContractSchemaView.as_view(),
        name="api_contract_schema",
    ),
    path("api/v1/contract/payload", PayloadCheckView.as_view(), name="api_contract_payload"),
    path("api/v1/contract/results", ResultsCheckView.as_view(), name="api_contract_results"),
    path("api/v1/plans/runs/<uuid:run_id>/rerun", RerunView.as_view()),
    path("api/v1/plans/runs/<uuid:run_id>/steps/<int:position>/resolve", ResolveStepView.as_view()),
    path("api/v1/tools", ToolsView.as_view()),
    path("api/v1/tools/<str:name>", ToolView.as_view()),
]
