"""Two people, or two tabs, edit the same thing: the second learns what saving would replace."""

from collections.abc import Callable
from typing import Any

import pytest
from django import forms
from django.db.models import Model
from django.test import Client

from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.models import Project
from diagnostics.alerting.notification_models import Channel
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.ingest.models import Quota
from diagnostics.reports.models import Subscription
from tests.agents.conftest import project as project
from tests.console import make_model
from tests.diagnostics.alerting.notifications.building import make_channel
from tests.diagnostics.reports.conftest import make_subscription
from tests.signing import join, make_person, signed_in

pytestmark = pytest.mark.django_db
WORDS = "changed elsewhere since you opened it"


@pytest.fixture
def client(project: Project) -> Client:
    """Give an administrator who signed in just now."""
    join(make_person(), project)
    return signed_in()


def channel(project: Project) -> str:
    return f"/alerts/channels/{make_channel(project).pk}/"


def rule(project: Project) -> str:
    row = AlertRule.objects.create(
        project=project,
        name="Slow",
        signal="latency_p95",
        detector="threshold",
        parameters={"limit": 20_000.0},
        severity="warning",
        filter="provider=acme",
        group_by=["model"],
    )
    return f"/alerts/rules/{row.pk}/"


def report(project: Project) -> str:
    person = project.memberships.get().user
    return f"/reports/subscriptions/{make_subscription(project, person).pk}/"


def quota(project: Project) -> str:
    Quota.objects.create(project=project, events_per_day=1000)
    return "/settings/quotas/"


def provider(project: Project) -> str:
    row = make_model(project)
    Provider.objects.update(base_url="http://127.0.0.1:9")
    return f"/settings/providers/{row.provider_id}/"


def model(project: Project) -> str:
    row = make_model(project)
    return f"/settings/providers/{row.provider_id}/models/{row.pk}/"


EDITED: list[tuple[Callable[[Project], str], type[Model], str, object, object]] = [
    (channel, Channel, "digest_above", 11, 12),
    (rule, AlertRule, "severity", "critical", "info"),
    (report, Subscription, "only_when_changed", True, False),
    (quota, Quota, "events_per_day", 2000, 3000),
    (provider, Provider, "name", "theirs", "mine"),
    (model, LanguageModel, "max_output_tokens", 600, 700),
]
"""Address, table, field; what the first person writes into it, and the second."""


def form_of(client: Client, address: str) -> dict[str, Any]:
    """Open a page; return what its form would send as it stands."""
    return _sent_by(client.get(address).context["form"])


def _sent_by(form: forms.BaseForm) -> dict[str, Any]:
    values = {one.html_name: one.value() for one in form}
    sent = {name: value for name, value in values.items() if value not in (None, False)}
    return {**sent, "opened_as": form.opened_as, "save": "1"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("page", "table", "field", "theirs", "mine"), EDITED)
def test_the_second_to_save_is_told_what_it_replaces_and_saves_when_asked_again(
    client: Client,
    project: Project,
    page: Callable[[Project], str],
    table: type[Model],
    field: str,
    theirs: object,
    mine: object,
) -> None:
    address = page(project)
    first, second = form_of(client, address), form_of(client, address)

    def stored() -> object:
        return table._default_manager.values_list(field, flat=True).get()

    _write(first, field, theirs)
    assert client.post(address, first).status_code == 302
    _write(second, field, mine)
    refused = client.post(address, second)
    assert WORDS in refused.text
    assert stored() == theirs
    again = {**second, "opened_as": refused.context["form"].opened_as}
    assert client.post(address, again).status_code == 302
    assert stored() == mine


def _write(sent: dict[str, Any], field: str, value: object) -> None:
    sent[field] = value
    if value is False:
        del sent[field]


def test_a_form_that_says_not_what_it_was_opened_on_is_saved(
    client: Client, project: Project
) -> None:
    address = quota(project)
    assert client.post(address, {"events_per_day": "5"}).status_code == 302


def test_what_somebody_else_wrote_alike_is_no_change(client: Client, project: Project) -> None:
    address = quota(project)
    first, second = form_of(client, address), form_of(client, address)
    for sent in (first, second):
        sent["events_per_day"] = 7
        assert client.post(address, sent).status_code == 302
