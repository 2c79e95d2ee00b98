"""What a message says first, what it leaves out, and what a name cannot do to it."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.notification_facts import headline_of, lead_of, subject_of
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.reminders import remind_all
from diagnostics.alerting.senders.chat import body_of
from diagnostics.alerting.senders.messages import read_facts
from diagnostics.outbound.mail import render_text
from tests.diagnostics.alerting.notifications.building import (
    VERDICT,
    happen,
    make_channel,
    make_incident,
    make_rule,
    travel,
)

pytestmark = pytest.mark.django_db
RATE = "31 % of 412 runs".replace(" %", "\N{NARROW NO-BREAK SPACE}%")


def in_text(row: Notification) -> list[str]:
    facts = read_facts(row)
    values = {"facts": facts, "headline": headline_of(facts), "lead": lead_of(facts)}
    return render_text("alert", values).splitlines()


def in_chat(row: Notification) -> list[str]:
    return body_of(read_facts(row)).splitlines()


def subject(row: Notification) -> str:
    return subject_of(read_facts(row)).replace("\N{NARROW NO-BREAK SPACE}", " ")


def add_slices(incident: Incident, project: Project, number: int) -> None:
    for index in range(number):
        other = make_incident(project, f"m-{index}", rule=make_rule(project))
        other.slices.update(incident=incident)


def test_a_message_says_project_severity_and_what_fails_in_its_first_words(
    project: Project,
) -> None:
    make_channel(project)
    (fired,) = happen(make_incident(project))
    assert subject(fired) == "[P1] warning: anthropic/claude-haiku, 31 % of 412 runs"


def test_a_chat_says_the_whole_verdict_below_its_title(project: Project) -> None:
    make_channel(project)
    (fired,) = happen(make_incident(project))
    first, second, *_ = in_chat(fired)
    assert first.startswith("Degrading since 22 Nov 14:32 UTC: anthropic/claude-haiku")
    assert second.startswith("Looks like the model or provider, not us")


def test_a_recovery_neither_repeats_its_duration_nor_says_what_to_change(project: Project) -> None:
    make_channel(project, "chat", "slack://TAAAAAAAAA/BAAAAAAAAA/cccccccccccccccccccccccc")
    incident = make_incident(project)
    happen(incident)
    travel(timedelta(hours=2))
    (over,) = happen(incident, "cleared")
    assert subject(over).startswith("[P1] Resolved after 2 h 18 min: anthropic/claude-haiku")
    (last,) = in_chat(over)
    assert last.startswith("Last verdict: Degrading since 22 Nov 14:32 UTC")
    assert not [line for line in in_text(over) if line.startswith(("Rate:", "Baseline:"))]


def test_an_escalation_counts_from_when_there_was_something_to_acknowledge(
    project: Project,
) -> None:
    boss = make_channel(project, name="boss")
    make_channel(project, escalate_to=boss, escalate_after_minutes=15)
    happen(make_incident(project))
    travel(timedelta(minutes=15))
    remind_all()
    row = Notification.objects.get(reason="escalated")
    assert subject(row).startswith("[P1] warning: Not acknowledged for 15 min")


def test_what_a_message_lists_has_one_label(project: Project) -> None:
    make_channel(project)
    incident = make_incident(project)
    add_slices(incident, project, 59)
    (fired, *_) = happen(incident)
    lines = in_text(fired)
    assert len([line for line in lines if line.startswith("Affected:")]) == 1
    assert len([line for line in lines if line.startswith("Rule:")]) == 1
    assert "          50 more" in lines
    (affected,) = [line for line in in_chat(fired) if line.startswith("Affected:")]
    assert affected.startswith("Affected: anthropic/claude-haiku; anthropic/m-0; ")
    assert affected.endswith("; 50 more")


def test_a_chat_does_not_list_the_one_series_that_its_title_names(project: Project) -> None:
    make_channel(project)
    (fired,) = happen(make_incident(project))
    assert "Affected" not in body_of(read_facts(fired))


def test_a_name_cannot_forge_a_line_of_a_message(project: Project) -> None:
    make_channel(project)
    name = "m-1\nAcknowledge: https://evil.example/\u2028x \N{RIGHT-TO-LEFT OVERRIDE}y"
    verdict: dict[str, Any] = deepcopy(VERDICT)
    verdict["told"]["rest"] = f": anthropic/{name}, 31 % of 412 runs."
    (fired,) = happen(make_incident(project, name, title=f"anthropic/{name}", verdict=verdict))
    text = "\n".join([subject(fired), *in_chat(fired), *in_text(fired)])
    assert "evil.example" in text
    for forged in ("\nAcknowledge", "\u2028", "\N{RIGHT-TO-LEFT OVERRIDE}"):
        assert forged not in text


def test_a_digest_says_each_incident_once_as_it_is_by_now_the_worst_first(project: Project) -> None:
    make_channel(project, digest_above=1)
    happen(make_incident(project, "before"))
    over = make_incident(project, "over")
    happen(over)
    happen(make_incident(project, "mild"))
    happen(make_incident(project, "grave", rule=make_rule(project, severity="critical")))
    happen(over, "cleared")
    row = Notification.objects.get(reason="digest")
    facts = read_facts(row)
    paths = {one.pk: one.title.removeprefix("anthropic/") for one in Incident.objects.all()}
    order = [paths[int(line.path.strip("/").rpartition("/")[2])] for line in facts.lines]
    assert order == ["grave", "mild", "over"]
    assert subject(row) == "[P1] critical: 3 alerts, 1 resolved: anthropic/grave, 31 % of 412 runs"
    assert facts.lines[2].subject.startswith("Resolved after ")
