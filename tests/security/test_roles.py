"""Who may do what, in the console and over REST: what one refuses, the other does not allow.

An operator does the work (goals, failures, incidents, silences, breakers); an administrator
changes how the project is set up. Over REST both need the scope `admin`: keys have no roles.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.console import Role, make_member
from tests.security.addresses import all_addresses
from tests.security.foreign_rows import FIXED, first_of, model_of

pytestmark = pytest.mark.django_db
NOBODY = 999_999
# Each page that takes a form, by who may post it.
CONSOLE: dict[str, tuple[str, ...]] = {
    "admin": (
        "alert_channel_delete", "alert_channel_new", "alert_channel_rotate",
        "alert_channel_switch", "alert_channel_test", "alert_channel", "alert_rule",
        "alert_rule_delete", "alert_rule_new", "alert_rule_switch",
        "allow_tool",
        "fix_policy", "redact_again", "redaction", "switch_rule",
        "add_model", "add_provider", "change_member", "change_model", "change_provider",
        "prices", "remove_member", "remove_price", "revoke_invitation", "revoke_key",
        "rotate_key", "settings_demo", "settings_keys", "settings_mail",
        "settings_members", "settings_planning", "settings_projects", "settings_purge",
        "settings_quotas", "test_model",
    ),
    "operator": (
        "acknowledge_incident", "act_on_failures", "act_on_incidents", "answer_goal",
        "assign_incident",
        "cancel_goal", "cancel_run", "close_breaker", "comment_incident",
        "decide_pattern", "deploys", "failures_seen", "goal_new", "isolate_breaker",
        "isolate_model", "link_incident",
        "mark_verdict", "retry_notification", "rate_incident", "rerun_run",
        "resolve_incident", "resolve_run", "send_test_event", "silence_create", "silence_end",
        "silence_incident", "undo_goal",
    ),
}  # fmt: skip
# The same over REST: the action of the console, the method and the path.
REST = (
    ("admin", "fix_policy", "PUT", "fix-patterns/policy"),
    ("admin", "allow_tool", "PUT", "tools/echo"),
    ("admin", "alert_rule_new", "POST", "alert-rules"),
    ("admin", "alert_rule", "PATCH", f"alert-rules/{NOBODY}"),
    ("admin", "alert_rule_delete", "DELETE", f"alert-rules/{NOBODY}"),
    ("operator", "silence_create", "POST", "silences"),
    ("operator", "silence_end", "DELETE", f"silences/{NOBODY}"),
    ("operator", "acknowledge_incident", "POST", f"incidents/{NOBODY}/acknowledge"),
    ("operator", "resolve_incident", "POST", f"incidents/{NOBODY}/resolve"),
    ("operator", "comment_incident", "POST", f"incidents/{NOBODY}/comment"),
    ("operator", "decide_pattern", "POST", f"fix-patterns/{NOBODY}/approve"),
    ("operator", "isolate_breaker", "POST", f"breakers/{NOBODY}/isolate"),
    ("operator", "close_breaker", "POST", f"breakers/{NOBODY}/close"),
    ("operator", "goal_new", "POST", "goals"),
    ("operator", "answer_goal", "POST", "goals/nope/answer"),
    ("operator", "cancel_goal", "POST", "goals/nope/cancel"),
    ("operator", "undo_goal", "POST", "goals/nope/undo"),
)
# What a viewer may post: what is their own, or what changes nothing.
OWN = frozenset(
    {
        "account", "sign_out_everywhere", "switch_project", "save_view", "change_view",
        "report_new", "report_edit", "report_order", "report_send", "report_pause",
        "report_unsubscribe", "acknowledge_link", "invitation", "lab", "replay",
        "alert_rule_new_test", "alert_rule_test", "setup", "theme", "dismiss_notice",
        "grpc_traces", "grpc_logs", "grpc_metrics",
    }
)  # fmt: skip
NOT_OURS = ("admin/", "accounts/", "api/", "v1/", "mcp", "healthz", "readyz", "metrics")


@pytest.fixture
def project() -> Iterator[Project]:
    authentication.forget_all()
    yield Project.objects.create(slug="p", name="P")
    authentication.forget_all()


def pages(project: Project) -> dict[str, str]:
    """Return the path of each page by its URL name, to rows of the project."""
    found = {}
    for address in all_addresses():
        if address.name and not address.route.startswith(NOT_OURS):
            values = {name: value_of(address.route, name, project) for name in address.names}
            found[address.name] = address.path(**values)
    return found


def value_of(route: str, name: str, project: Project) -> str:
    model = model_of(route, name)
    return str(first_of(model, project).pk) if model else FIXED[name][0]


def post_as(project: Project, role: Role, path: str) -> int:
    client = Client(raise_request_exception=False)
    name = f"a-{role}"
    user = User.objects.filter(username=name).first()
    client.force_login(user or make_member(project, name, role))
    return client.post(path).status_code


def ask(key: str, method: str, path: str) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    client: Any = Client(raise_request_exception=False, headers=headers)
    answer = client.generic(method, f"/api/v1/{path}", b"{}", "application/json")
    return int(answer.status_code)


@pytest.mark.slow
def test_a_viewer_posts_nothing_that_changes_the_project(project: Project) -> None:
    answers = {
        name: post_as(project, Role.VIEWER, path)
        for name, path in pages(project).items()
        if name not in OWN
    }
    assert {k: v for k, v in answers.items() if v not in (403, 405)} == {}
    refused = {name for name, status in answers.items() if status == 403}
    assert refused == {name for names in CONSOLE.values() for name in names}


@pytest.mark.slow
def test_an_operator_does_the_work_and_changes_no_settings(project: Project) -> None:
    paths = pages(project)
    for name in CONSOLE["admin"]:
        assert post_as(project, Role.OPERATOR, paths[name]) == 403, name
    for name in CONSOLE["operator"]:
        assert post_as(project, Role.OPERATOR, paths[name]) not in (403, 500), name


@pytest.mark.slow
def test_an_administrator_may_do_both(project: Project) -> None:
    paths = pages(project)
    for name in (*CONSOLE["admin"], *CONSOLE["operator"]):
        assert post_as(project, Role.ADMIN, paths[name]) not in (403, 500), name


@pytest.mark.parametrize(("needed", "action", "method", "path"), REST)
def test_rest_asks_for_the_scope_admin_where_the_console_asks_for_a_role(
    project: Project, needed: str, action: str, method: str, path: str
) -> None:
    assert action in CONSOLE[needed]
    for scope in Scope:
        status = ask(issue_key(project, scope, [scope]).text, method, path)
        assert status < 500
        assert (status == 403) == (scope is not Scope.ADMIN), scope
