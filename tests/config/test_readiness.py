import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from django.db import OperationalError, connection, transaction
from django.db.utils import ConnectionHandler
from django.test import Client
from psycopg.conninfo import make_conninfo
from pytest_django import Settings
from redis import Redis

from config import readiness
from config.celery import app
from config.database import database_settings
from diagnostics import clock, tasks
from diagnostics.accounts.models import Project
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.store.models import Heartbeat
from failsoft import VERSION
from plans.runs.claims import claim_run
from plans.runs.submission import submit_run
from tests.diagnostics.alerting.notifications.building import happen, make_channel, make_incident
from tests.embedded import running_broker


@pytest.fixture(autouse=True)
def _asked_inside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask in the thread of the test, whose rows no other one sees."""

    def ask(name: str) -> "Future[readiness.Parts]":
        answer: Future[readiness.Parts] = Future()
        answer.set_result(readiness.PROBES[name]())
        return answer

    if request.node.get_closest_marker("django_db") is not None:
        monkeypatch.setattr(readiness, "_start_probe", ask)


def test_the_client_of_the_broker_is_loaded_before_the_first_request() -> None:
    program = "import config.asgi, sys; sys.exit('kombu.transport.redis' not in sys.modules)"
    env = {**os.environ, "BROKER_URL": "redis://127.0.0.1:1/0"}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)


WORKER = """
import multiprocessing, time
def serve():
    import config.asgi
    print("up", flush=True)
    time.sleep(60)
multiprocessing.get_context("fork").Process(target=serve, name="granian-worker").start()
time.sleep(60)
"""


def test_a_web_worker_ends_with_the_server_that_started_it() -> None:
    """One that served on would answer beside those of the next server, with old settings."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        server.kill()
        assert server.communicate(timeout=10)[0] == b""


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("REPLICAOF 127.0.0.1 1", "read-only"),
        ("CONFIG SET maxmemory 1", "memory is full"),
        ("ACL SETUSER default resetkeys ~other*", "permissions"),
        ("ACL SETUSER default -sadd", "permissions"),
        ("CONFIG SET min-replicas-to-write 1", "min-replicas-to-write"),
        ("CONFIG SET requirepass another", "refuses"),
    ],
)
def test_a_broker_that_takes_no_message_is_not_ready_and_says_why(
    monkeypatch: pytest.MonkeyPatch, command: str, reason: str
) -> None:
    with running_broker() as url:
        monkeypatch.setattr(app.conf, "broker_write_url", url)
        assert readiness.PROBES["broker"]() == {"broker": {"ok": True}}
        path = unquote(url.removeprefix("redis+socket://").partition("?")[0])
        with Redis(unix_socket_path=path) as broker:
            broker.execute_command(*command.split())
        part = readiness.PROBES["broker"]()["broker"]
    assert part["ok"] is False
    assert reason in str(part["reason"])


def test_a_broker_that_refuses_at_once_is_named_within_the_time_of_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_broker() as url:
        for address, reason in (
            (f"{url}99", "the broker has no database of the number in BROKER_URL"),
            ("redis+socket:///nonexistent", "nothing listens at the address of BROKER_URL"),
            ("redis://127.0.0.1:1/0", "nothing listens at the address of BROKER_URL"),
            ("amqp://127.0.0.1:1//", "nothing listens at the address of BROKER_URL"),
        ):
            monkeypatch.setattr(app.conf, "broker_write_url", address)
            begin = time.monotonic()
            part = readiness.PROBES["broker"]()["broker"]
            assert part == {"ok": False, "reason": reason}
            assert time.monotonic() - begin < readiness.PROBE_SECONDS


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"host": "127.0.0.1", "port": "1"}, "nothing listens at the address of DATABASE_URL"),
        ({"host": "/nonexistent"}, "nothing listens at the address of DATABASE_URL"),
        ({"dbname": "no such"}, "the database of DATABASE_URL does not exist"),
        ({"user": "nobody there"}, "the server refuses the role of DATABASE_URL"),
        ({"dbname": "postgres"}, "the tables are missing or in another schema"),
    ],
)
def test_a_database_that_refuses_is_named_within_the_time_of_an_answer(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, str], reason: str | None
) -> None:
    own = {name: str(connection.settings_dict[name.upper()]) for name in ("host", "port", "user")}
    url = make_conninfo(**{"dbname": connection.settings_dict["NAME"], **own, **change})
    pooled: Any = ConnectionHandler({"default": database_settings(url, 4)})["default"]
    monkeypatch.setattr(readiness, "connection", pooled)
    monkeypatch.setattr(transaction, "get_connection", lambda using: pooled)
    begin = time.monotonic()
    part = readiness._state(readiness._probe_database)
    assert time.monotonic() - begin < readiness.PROBE_SECONDS
    pooled.close_pool()
    assert part["ok"] is (reason is None)
    assert str(part.get("reason")).startswith(str(reason))


SERVERS = ("worker:notify", "worker:report")


def beat(seconds_ago: int = 0) -> None:
    at = clock.now() - timedelta(seconds=seconds_ago)
    for name in ("beat", "worker", "evaluator", "queue:plan", "queue:steps", *SERVERS):
        Heartbeat.objects.update_or_create(name=name, defaults={"at": at})


def test_healthz_needs_nothing(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content.decode()) == (200, f"ok {VERSION}\n")


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
            "report": {"ok": True},
        },
    }


@pytest.mark.django_db
@pytest.mark.parametrize("queue", ["notify", "report"])
def test_readyz_names_a_queue_that_no_worker_serves(client: Client, queue: str) -> None:
    beat()
    Heartbeat.objects.filter(name=f"worker:{queue}").delete()
    parts = client.get("/readyz").json()["parts"]
    reason = f"no worker of the queue {queue} has reported yet"
    assert parts[queue] == {"ok": False, "reason": reason}
    Heartbeat.objects.create(name=f"worker:{queue}", at=clock.now() - timedelta(minutes=1))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "not reported for 20 s" in answer.json()["parts"][queue]["reason"]
    Heartbeat.objects.create(name=f"pool:{queue}", at=clock.now())
    assert "has no process" in client.get("/readyz").json()["parts"][queue]["reason"]


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
    assert answer.json()["parts"]["beat"] == {"ok": False, "reason": "no beat has reported yet"}


@pytest.mark.django_db
def test_readyz_is_red_after_three_minutes_without_a_look_at_alerts(client: Client) -> None:
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
def test_readyz_names_the_pool_of_a_worker_whose_processes_do_not_start(client: Client) -> None:
    beat(seconds_ago=60)
    tasks.note_workers(["plan", "fold"], has_pool=False)
    parts = client.get("/readyz").json()["parts"]
    for part, queue in (("plan", "plan"), ("worker", "fold")):
        assert (
            f"the pool of the worker of the queue {queue} has no process" in parts[part]["reason"]
        )
    assert "no worker of the queue steps" in parts["steps"]["reason"]
    tasks.note_workers(["plan"])
    assert client.get("/readyz").json()["parts"]["plan"]["ok"]


@pytest.mark.django_db
def test_readyz_waits_for_a_lost_database_only_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat()
    probes_run = []

    def fail() -> None:
        probes_run.append(1)
        raise OperationalError

    monkeypatch.setattr(readiness, "_probe_database", fail)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    parts = answer.json()["parts"]
    assert parts["database"] == {"ok": False, "reason": "OperationalError"}
    assert parts["worker"] == parts["beat"] == readiness.UNSEEN
    assert probes_run == [1]


@pytest.mark.django_db
def test_readyz_asks_the_model_when_there_is_one(client: Client, settings: Settings) -> None:
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
def test_c5_readyz_notices_a_queue_whose_workers_are_stuck(client: Client, queue: str) -> None:
    beat()
    Heartbeat.objects.filter(name=f"queue:{queue}").update(at=clock.now() - timedelta(seconds=60))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert f"queue {queue} has taken a message" in answer.json()["parts"][queue]["reason"]


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


@pytest.mark.django_db
def test_a_long_queue_with_living_workers_is_ready_and_named(client: Client) -> None:
    beat(seconds_ago=60)
    at = clock.now()
    for name in ("beat", "evaluator"):
        Heartbeat.objects.filter(name=name).update(at=at)
    project = Project.objects.create(slug="busy", name="Busy")
    for number in range(2):
        plan = {"steps": [{"step_id": "a", "tool": "echo"}]}
        submit_run(project.pk, plan, f"c{number}")
    assert client.get("/readyz").status_code == 503
    tasks.note_workers(["plan", "steps", "fold", "notify", "report"])
    answer = client.get("/readyz")
    assert answer.status_code == 200
    parts = answer.json()["parts"]
    assert parts["steps"] == {"ok": True, "note": "busy: 2 plan runs waiting"}
    assert parts["plan"] == {"ok": True, "note": "busy: 0 goals waiting"}
    assert parts["worker"] == {"ok": True, "note": "busy"}
    Heartbeat.objects.filter(name="worker:steps").update(at=at - timedelta(seconds=21))
    parts = client.get("/readyz").json()["parts"]
    reason = "no worker of the queue steps has taken a message for 20 s"
    assert parts["steps"] == {"ok": False, "reason": reason}


class DiskFullError(Exception):
    sqlstate = "53100"


@pytest.mark.django_db
def test_readyz_names_a_full_disk_of_the_database(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OperationalError("could not extend file") from DiskFullError()

    beat()
    monkeypatch.setattr(readiness, "_test_write", fail)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    reason = "disk full: the database server's"
    assert answer.json()["parts"]["database"] == {"ok": False, "reason": reason}


@pytest.mark.django_db
def test_readyz_names_the_full_folder_of_the_local_database(
    client: Client, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat()
    (tmp_path / "postgres").mkdir()
    settings.FAILSOFT_LOCAL_STACK, settings.FAILSOFT_DATA_DIR = True, tmp_path
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(readiness, "LEAST_FREE_BYTES", 1 << 60)
    reason = f"disk full: {tmp_path / 'postgres'}"
    answer = client.get("/readyz")
    assert answer.json()["parts"]["database"] == {"ok": False, "reason": reason}


@pytest.mark.django_db
def test_readyz_names_a_database_that_only_reads(client: Client) -> None:
    beat()
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        answer = client.get("/readyz")
    reason = "the database is read-only"
    assert answer.json()["parts"]["database"] == {"ok": False, "reason": reason}


def test_a_probe_that_hangs_delays_no_other_and_is_not_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goes_on, probes_run = threading.Event(), []

    def hang() -> readiness.Parts:
        probes_run.append(1)
        goes_on.wait(30)
        return {"broker": {"ok": True}}

    probes = {"database": lambda: {"database": {"ok": True}}, "broker": hang}
    monkeypatch.setattr(readiness, "PROBES", probes)
    monkeypatch.setattr(readiness, "_running_probes", {})
    monkeypatch.setattr(readiness, "PROBE_SECONDS", 0.2)
    try:
        for _ in range(2):
            parts = readiness.judge_all()
            assert parts == {"database": {"ok": True}, "broker": readiness.SILENT}
        assert probes_run == [1]
    finally:
        goes_on.set()
    monkeypatch.setattr(readiness, "PROBE_SECONDS", 10)
    assert readiness.judge_all()["broker"] == {"ok": True}
