"""URLs of the agents app."""

from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from agents.actions.api import EntriesView, UndoView
from agents.breakers.alerts import gauge_breakers
from agents.breakers.api import BreakersView, MoveBreakerView
from agents.breakers.views import breakers, isolate_model, move_breaker
from agents.console.failure_page import failure
from agents.console.goal_actions import answer, cancel, export_goals, goal_new, patterns, undo
from agents.console.goal_page import export_goal
from agents.console.model_page import model
from agents.console.plan_run_page import cancel as cancel_run
from agents.console.plan_run_page import (
    moved_results,
    plan_run,
    plan_runs,
    rerun,
    resolve,
    run_results,
)
from agents.console.run_list import export_runs, moved_live, runs
from agents.console.run_page import moved_goal, run
from agents.console.search import find_run, search_page
from agents.console.tools_page import allow_tool, tools
from agents.demo.views import demo
from agents.fix_patterns.api import FixDecisionView, FixPatternsView, FixPolicyView
from agents.fix_patterns.views import decide_pattern, fix_patterns, set_policy
from agents.goals.api import AnswerView, CancelView, GoalsView, GoalView
from agents.lab.api import ParseView, ReplayView
from agents.lab.views import lab, replay
from agents.llm.settings_page import language_model, provider, providers, test_model
from agents.purge.views import planning, purge
from diagnostics.metrics import add_gauges

# Here, because only processes that serve HTTP need it.
add_gauges(gauge_breakers)

MOVED_TO_RUNS = RedirectView.as_view(
    pattern_name="runs", query_string=True, http_method_names=["get", "head"]
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("runs/", runs, name="runs"),
    # A correlation id may hold slashes.
    path("runs/<path:reference>/", run, name="run"),
    path("export/runs.<slug:ending>", export_runs, name="export_runs"),
    # Former URLs of goals and the live view: links in mails and trackers stay valid.
    path("goals/", MOVED_TO_RUNS, name="goals"),
    path("live/", moved_live, name="live"),
    path("export/goals.<slug:ending>", export_goals, name="export_goals"),
    path("goals/new/", goal_new, name="goal_new"),
    path("goals/<str:reference>/", moved_goal, name="goal"),
    path("goals/<uuid:goal_id>/goal.json", export_goal, name="export_goal"),
    path("goals/<uuid:goal_id>/cancel/", cancel, name="cancel_goal"),
    path("goals/<uuid:goal_id>/answer/", answer, name="answer_goal"),
    path("goals/<uuid:goal_id>/undo/", undo, name="undo_goal"),
    path("failures/<int:group_id>/", failure, name="failure"),
    path("failures/<int:group_id>/replay/", replay, name="replay"),
    path("lab/", lab, name="lab"),
    path("plan-runs/", plan_runs, name="plan_runs"),
    path("plan-runs/<uuid:run_id>/", plan_run, name="plan_run"),
    path("plan-runs/<uuid:run_id>/results.json", run_results, name="run_results"),
    path("plan-runs/<uuid:run_id>/cancel/", cancel_run, name="cancel_run"),
    path("plan-runs/<uuid:run_id>/rerun/", rerun, name="rerun_run"),
    path("plan-runs/<uuid:run_id>/resolve/", resolve, name="resolve_run"),
    path("runs/<uuid:run_id>/results.json", moved_results),
    path("tools/", tools, name="tools"),
    path("tools/allow/", allow_tool, name="allow_tool"),
    path("search/", search_page, name="search"),
    # Links in mails and trackers lead here.
    path("find/", find_run, name="find_goal"),
    path("models/<name:provider>/<name:name>/", model, name="model"),
    path("breakers/", breakers, name="breakers"),
    path("breakers/isolate/", isolate_model, name="isolate_model"),
    path(
        "breakers/<int:breaker_id>/isolate/", move_breaker, {"verb": "isolate"}, "isolate_breaker"
    ),
    path("breakers/<int:breaker_id>/close/", move_breaker, {"verb": "close"}, "close_breaker"),
    path("fix-patterns/", fix_patterns, name="fix_patterns"),
    path("fix-patterns/policy/", set_policy, name="fix_policy"),
    path("fix-patterns/<int:pattern_id>/<slug:verb>/", decide_pattern, name="decide_pattern"),
    path("settings/demo/", demo, name="settings_demo"),
    path("settings/planning/", planning, name="settings_planning"),
    path("settings/purge/", purge, name="settings_purge"),
    path("settings/providers/", providers, name="settings_providers"),
    path("settings/providers/new/", provider, name="add_provider"),
    path("settings/providers/<int:identity>/", provider, name="change_provider"),
    path("settings/providers/<int:provider_id>/models/new/", language_model, name="add_model"),
    path(
        "settings/providers/<int:provider_id>/models/<int:identity>/",
        language_model,
        name="change_model",
    ),
    path("settings/models/<int:identity>/test/", test_model, name="test_model"),
    path("help/patterns/", patterns, name="patterns"),
    path("api/v1/breakers", BreakersView.as_view()),
    path("api/v1/breakers/<int:breaker_id>/<slug:verb>", MoveBreakerView.as_view()),
    path("api/v1/entries", EntriesView.as_view()),
    path("api/v1/fix-patterns", FixPatternsView.as_view()),
    path("api/v1/fix-patterns/policy", FixPolicyView.as_view()),
    path("api/v1/fix-patterns/<int:pattern_id>/<slug:verb>", FixDecisionView.as_view()),
    path("api/v1/lab/parse", ParseView.as_view()),
    path("api/v1/lab/replay", ReplayView.as_view()),
    path("api/v1/goals", GoalsView.as_view()),
    path("api/v1/goals/<str:reference>", GoalView.as_view()),
    path("api/v1/goals/<str:reference>/answer", AnswerView.as_view()),
    path("api/v1/goals/<str:reference>/cancel", CancelView.as_view()),
    path("api/v1/goals/<str:reference>/undo", UndoView.as_view()),
]
