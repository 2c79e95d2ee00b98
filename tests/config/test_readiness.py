from datetime import timedelta

import pytest
from django.db import OperationalError
from django.test import Client
from pytest_django import Settings

from config import readiness
from diagnostics import clock
from diagnostics.models import Channel, Heartbeat, Notification, Project
from plans.claims import claim_run
from plans.submitting import submit_run
from tests.diagnostics.notifications.building import happen, make_channel, make_incident


def beat(seconds_ago: int = 0) -> None:
    at = clock.now() - timedelta(seconds=seconds_ago)
    for name in ("beat", "worker", "evaluator", "queue:plan", "queue:steps"):
        Heartbeat.objects.update_or_create(name=name, defaults={"at": at})


def test_healthz_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").status_code == 200


@pytest.mark.django_db
def test_readyz_is_200_when_every_part_answers(client: Client) -> None:
    beat()
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "ready": True,
        "parts": {
            "database": {"ok": True},
            "broker": {"ok": True},
            "worker": {"ok": True},
            "beat": {"ok": True},
            "evaluator": {"ok": True},
            "plan": {"ok": True},
            "steps": {"ok": True},
            "notify": {"ok": True},
        },
    }


@pytest.mark.django_db
def test_readyz_is_red_when_notifications_wait_for_a_sender(client: Client) -> None:
    beat()
    project = Project.objects.create(slug="p", name="P")
    channel = make_channel(project)
    happen(make_incident(project))
    assert client.get("/readyz").status_code == 200
    Notification.objects.update(next_attempt_at=clock.now() - timedelta(minutes=11))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    reason = "1 notification due for more than 10 min"
    assert answer.json()["parts"]["notify"] == {"ok": False, "reason": reason}
    Channel.objects.filter(pk=channel.pk).update(failing_since=clock.now())
    assert client.get("/readyz").status_code == 200


@pytest.mark.django_db
def test_readyz_names_the_part_that_never_reported(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["beat"] == {
        "ok": False,
        "reason": "no beat has reported yet",
    }


@pytest.mark.django_db
def test_readyz_is_red_after_three_minutes_without_a_look_at_alerts(
    client: Client,
) -> None:
    beat()
    at = clock.now() - timedelta(seconds=170)
    Heartbeat.objects.filter(name="evaluator").update(at=at)
    assert client.get("/readyz").status_code == 200
    Heartbeat.objects.filter(name="evaluator").update(at=at - timedelta(seconds=15))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    reason = "the evaluator has not reported for 180 s"
    assert answer.json()["parts"]["evaluator"] == {"ok": False, "reason": reason}


@pytest.mark.django_db
def test_readyz_names_the_part_that_went_silent(client: Client) -> None:
    beat(seconds_ago=60)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "not reported for 20 s" in answer.json()["parts"]["worker"]["reason"]


@pytest.mark.django_db
def test_readyz_waits_for_a_lost_database_only_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat()
    asked = []

    def fail() -> None:
        asked.append(1)
        raise OperationalError

    monkeypatch.setattr(readiness, "_probe_database", fail)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    parts = answer.json()["parts"]
    assert parts["database"] == {"ok": False, "reason": "OperationalError"}
    assert parts["worker"] == parts["beat"] == readiness.UNSEEN
    assert asked == [1]


@pytest.mark.django_db
def test_readyz_asks_the_model_when_there_is_one(
    client: Client, settings: Settings
) -> None:
    beat()
    settings.FAILSOFT_MODEL_URL = "http://127.0.0.1:9"  # nobody listens there
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["model"] == {"ok": False, "reason": "ConnectError"}


@pytest.mark.django_db
def test_pages_carry_the_strict_policy(client: Client) -> None:
    headers = client.get("/healthz").headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "nonce" not in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.django_db
@pytest.mark.parametrize("queue", ["plan", "steps"])
def test_c5_readyz_notices_a_queue_whose_workers_are_stuck(
    client: Client, queue: str
) -> None:
    beat()
    Heartbeat.objects.filter(name=f"queue:{queue}").update(
        at=clock.now() - timedelta(seconds=60)
    )
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert (
        f"queue {queue} has taken a message" in answer.json()["parts"][queue]["reason"]
    )


@pytest.mark.django_db
def test_c5_a_worker_at_its_work_counts_as_taking_messages(client: Client) -> None:
    beat()
    Heartbeat.objects.filter(name="queue:steps").delete()
    assert client.get("/readyz").status_code == 503
    project = Project.objects.create(slug="busy", name="Busy")
    run = submit_run(project.pk, {"steps": [{"step_id": "a", "tool": "echo"}]}, "c")
    assert client.get("/readyz").status_code == 503
    claim_run(run.pk)
    assert client.get("/readyz").status_code == 200
