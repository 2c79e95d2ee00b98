"""A change of who answers a model's calls is a mark that nobody has to tell."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import answerers
from diagnostics.ingest.answerers import MOST_MARKS, forget_old_answerers
from diagnostics.ingest.models import Answerer, Deploy
from diagnostics.ingest.recording import record
from diagnostics.purge import purge_project
from failsoft.events import PostedEvent
from tests.diagnostics.builders import AT, make_event, succeeded

pytestmark = pytest.mark.django_db
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
Marks = list[tuple[str, str | None, str, datetime]]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    answerers._quiet.clear()
    yield
    answerers._quiet.clear()


class Poster:
    """Posts batches as requests do, each looked at once it is stored."""

    def __init__(self, project: Project, capture: DjangoCaptureOnCommitCallbacks) -> None:
        self.project = project
        self.capture = capture

    def post(self, *events: PostedEvent, is_demo: bool = False, forget: bool = True) -> None:
        if forget:
            # As another process, or minutes later.
            answerers._quiet.clear()
        with self.capture(execute=True):
            record(self.project.pk, events, is_demo=is_demo)

    @property
    def marks(self) -> Marks:
        rows = Deploy.objects.filter(project=self.project).order_by("at", "pk")
        return [(row.kind, row.previous, row.version, row.at) for row in rows]


@pytest.fixture
def poster(
    project: Project, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> Poster:
    return Poster(project, django_capture_on_commit_callbacks)


def told(after: timedelta = timedelta(), /, **changes: Any) -> PostedEvent:
    return PostedEvent.model_validate(
        succeeded(occurred_at=(AT + after).isoformat(), environment="prod", **changes)
    )


def test_a_served_model_that_changes_is_a_mark_with_both_names(poster: Poster) -> None:
    poster.post(told(served_model="fake-1"))
    assert poster.marks == []
    poster.post(told(MINUTE, served_model="fake-1-mini"))
    assert poster.marks == [("observed_model", "fake-1", "fake-1-mini", AT + MINUTE)]
    mark = Deploy.objects.get()
    assert (mark.environment, mark.provider, mark.model) == ("prod", "fake", "fake-1")


@pytest.mark.parametrize(
    ("field", "kind"),
    [("upstream", "observed_upstream"), ("system_fingerprint", "observed_fingerprint")],
)
def test_the_host_and_the_fingerprint_are_watched_too(
    poster: Poster, field: str, kind: str
) -> None:
    poster.post(told(**{field: "one"}))
    poster.post(told(MINUTE, **{field: "two"}))
    assert poster.marks == [(kind, "one", "two", AT + MINUTE)]


def test_what_changes_in_one_moment_is_one_mark(poster: Poster) -> None:
    poster.post(told(served_model="a", upstream="azure", system_fingerprint="f1"))
    poster.post(told(MINUTE, served_model="b", upstream="openai", system_fingerprint="f2"))
    assert poster.marks == [("observed_model", "a", "b", AT + MINUTE)]
    assert Answerer.objects.count() == 6


def test_the_same_batch_twice_is_one_change(poster: Poster) -> None:
    batches = [[told(upstream="one")], [told(MINUTE, upstream="two")]]
    for batch in (*batches, *batches):
        poster.post(*batch)
    assert len(poster.marks) == 1


def test_a_change_within_a_batch_is_seen_in_any_order(poster: Poster) -> None:
    batch = [told(MINUTE * place, upstream="one" if place < 3 else "two") for place in range(6)]
    poster.post(*batch[::-1])
    assert poster.marks == [("observed_upstream", "one", "two", AT + 3 * MINUTE)]


def test_late_events_invent_no_change(poster: Poster) -> None:
    poster.post(told(DAY, upstream="two"))
    poster.post(told(upstream="one"), told(HOUR, upstream="zero"))
    poster.post(told(DAY + HOUR, upstream="two"))
    assert poster.marks == []


def test_a_clock_that_runs_ahead_makes_nothing_late(poster: Poster) -> None:
    poster.post(told(upstream="one"))
    arrives = clock.now() - AT
    poster.post(told(arrives + DAY, upstream="one"))
    poster.post(told(arrives + MINUTE, upstream="two"))
    assert poster.marks == [("observed_upstream", "one", "two", AT + arrives + MINUTE)]


def test_what_a_clock_that_runs_ahead_tells_changes_when_it_arrives(poster: Poster) -> None:
    poster.post(told(upstream="one"))
    before = clock.now()
    poster.post(told(before - AT + DAY, upstream="two"))
    ((_, previous, version, at),) = poster.marks
    assert (previous, version) == ("one", "two")
    assert before <= at <= clock.now()


def test_a_gateway_that_goes_to_and_fro_is_one_mark(poster: Poster) -> None:
    for place in range(40):
        poster.post(told(HOUR * place, upstream=("one", "two")[place % 2]))
    assert poster.marks == [("observed_upstream", "one", "two", AT + HOUR)]


def test_a_model_has_no_more_than_four_marks_a_day(poster: Poster) -> None:
    for place in range(20):
        poster.post(told(HOUR * place, system_fingerprint=f"f{place}"))
        poster.post(told(HOUR * place, model="fake-2", system_fingerprint=f"f{place // 10}"))
    of_model = Deploy.objects.filter(model="fake-1")
    assert of_model.count() == MOST_MARKS
    assert Deploy.objects.filter(model="fake-2").count() == 1
    poster.post(told(30 * HOUR, system_fingerprint="other"))
    assert of_model.count() == MOST_MARKS + 1


@pytest.mark.parametrize(
    "other", [{"model": "fake-2"}, {"provider": "fake-b"}, {"environment": "dev"}]
)
def test_each_model_provider_and_environment_has_answerers_of_its_own(
    poster: Poster, other: dict[str, str]
) -> None:
    first = {"upstream": "one", "occurred_at": AT.isoformat(), "environment": "prod"}
    poster.post(make_event(**first), make_event(**{**first, **other, "upstream": "two"}))
    assert poster.marks == []


def test_what_one_moment_changes_at_two_models_is_a_mark_of_each(poster: Poster) -> None:
    for place, upstream in enumerate(("one", "two")):
        models = (told(place * MINUTE, upstream=upstream, model=name) for name in "ab")
        poster.post(*models)
    assert [mark[2:] for mark in poster.marks] == [("two", AT + MINUTE)] * 2


def test_a_conflict_tells_nothing(poster: Poster) -> None:
    first = told(upstream="one")
    poster.post(first)
    poster.post(first.model_copy(update={"upstream": "two", "occurred_at": AT + MINUTE}))
    assert Answerer.objects.get().value == "one"


def test_names_are_kept_redacted(poster: Poster) -> None:
    secret = "sk-proj-" + "Zq7" * 14
    poster.post(told(upstream="one", served_model="a"))
    poster.post(told(MINUTE, upstream=f"host?key={secret}", served_model=f"m {secret}"))
    texts = [*Answerer.objects.values_list("value", flat=True), *(m[2] for m in poster.marks)]
    assert len(poster.marks) == 1
    assert not any(secret in text for text in texts)


def test_what_is_known_costs_a_batch_no_statement(poster: Poster) -> None:
    poster.post(told(upstream="one"))
    with poster.capture() as callbacks:
        record(poster.project.pk, [told(MINUTE, upstream="one"), told(MINUTE)])
    assert callbacks == []


def test_what_is_invented_for_a_demonstration_is_not_watched(poster: Poster) -> None:
    poster.post(told(upstream="one"), told(MINUTE, upstream="two"), is_demo=True)
    assert not Answerer.objects.exists()


def test_a_fault_of_watching_is_logged_and_no_fault_of_the_batch(
    poster: Poster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(answerers, "_save_sightings", lambda *_: 1 / 0)
        poster.post(told(upstream="one"))
    assert "division by zero" in caplog.text
    poster.post(told(MINUTE, upstream="one"), forget=False)
    assert Answerer.objects.get().first_seen == AT + MINUTE


def test_a_purged_project_has_no_observed_marks_and_keeps_what_was_told(poster: Poster) -> None:
    poster.post(told(upstream="one"), told(MINUTE, upstream="two"))
    Deploy.objects.create(project=poster.project, at=AT, kind="prompt", version="v5")
    purge_project(poster.project)
    assert [mark[0] for mark in poster.marks] == ["prompt"]
    assert not Answerer.objects.exists()


def test_answerers_are_forgotten_with_their_events(poster: Poster) -> None:
    now = clock.now() - AT
    poster.post(told(now - 400 * DAY, upstream="one"), told(now, upstream="one", model="b"))
    assert forget_old_answerers() == 1
    assert Answerer.objects.get().model == "b"


def test_observed_changes_are_listed_with_deploys_and_cannot_be_told(poster: Poster) -> None:
    poster.post(told(upstream="one"), told(MINUTE, upstream="two"))
    key = issue_key(poster.project, "k", [Scope.READ, Scope.INGEST]).text
    client = Client(headers={"Authorization": f"Bearer {key}"})
    (item,) = client.get("/api/v1/deploys", {"model": "fake-1"}).json()["items"]
    assert (item["kind"], item["previous"], item["version"]) == ("observed_upstream", "one", "two")
    assert client.get("/api/v1/deploys", {"model": "other"}).json()["items"] == []
    body = {"at": AT.isoformat(), "kind": "observed_model", "version": "v"}
    assert client.post("/api/v1/deploys", body, "application/json").status_code == 422


@pytest.mark.django_db(transaction=True)
def test_batches_at_once_mark_one_change_once(project: Project) -> None:
    record(project.pk, [told(upstream="one")])
    together = Barrier(8)

    def post(place: int) -> None:
        try:
            together.wait(10)
            answerers._quiet.clear()
            record(project.pk, [told((place + 1) * MINUTE, upstream="two")])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(post, range(8)))
    assert Deploy.objects.filter(project=project).count() == 1
    assert Answerer.objects.filter(project=project).count() == 2
