"""A project that has one of everything: no page writes "1 calls"."""

import re
from html import unescape

import pytest
from django.test import Client
from django.utils.html import strip_tags

from diagnostics.accounts.models import Project
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.store.aggregation import fold
from tests.agents.conftest import Planner, work_off
from tests.console import Role, make_member, post_runs, recently
from tests.console_pages import console_pages
from tests.diagnostics.alerting.notifications.building import make_channel, make_incident
from tests.diagnostics.reports.conftest import make_subscription

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = '{"steps": [{"step_id": "step_1", "tool": "echo", "args": {"a": 1}}]}'
UNREAD = re.compile(r"<(script|style|pre|code|option)[ >].*?</\1>", re.DOTALL)
MANY = re.compile(
    r"(?<![\d.,:/#+±-])\b1 (?:of 1 )?(?:more |other |sampled |failed )?"
    r"(?:attempt|call|event|failure|goal|incident|match|model|note|preview|rule|run|sample"
    r"|source|step|time|token|version)(?:s|es)\b"
)
ALSO = ["/?model=m", "/models/p/m/", "/runs/story/", "/failures/?q=model:m", "/incidents/"]


def test_one_of_everything_is_written_in_the_singular(
    planner: Planner, project: Project, client: Client
) -> None:
    person = make_member(project, "bob", Role.ADMIN)
    client.force_login(person)
    planner.will_say('{"steps": [', PLAN)
    planner.submit("Say hello", mode="plan", correlation_id="story")
    work_off()
    named = {"provider": "p", "model": "m", "prompt_version": "v1", "source": "one"}
    counted = {"input_tokens": 1, "output_tokens": 1, "latency_ms": 1}
    post_runs(project, 0, 1, recently(), **named, **counted)
    fold()
    ensure_standard_rules()
    make_channel(project)
    make_subscription(project, person)
    make_incident(project)
    many = {}
    for path in [*console_pages(client, project), *ALSO]:
        text = " ".join(unescape(strip_tags(UNREAD.sub("", client.get(path).text))).split())
        labels = " ".join(re.findall(r'aria-label="([^"]*)"', client.get(path).text))
        if found := MANY.findall(f"{text} {labels}"):
            many[path] = found
    assert many == {}
