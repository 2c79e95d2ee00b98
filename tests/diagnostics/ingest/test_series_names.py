"""A series keeps its name when a sender spells provider or model in another way."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from diagnostics.accounts.models import Project
from diagnostics.ingest import series_names
from diagnostics.ingest.api.outcomes import PostedOutcome, record_outcomes
from diagnostics.ingest.models import SeriesName
from diagnostics.ingest.recording import Recorded, RecordStatus, record
from diagnostics.purge import purge_project
from diagnostics.store.aggregation import fold
from diagnostics.store.models import Event, Series
from failsoft.events import PostedEvent
from tests.diagnostics.builders import AT, succeeded

pytestmark = pytest.mark.django_db
Pair = tuple[str | None, str | None]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    series_names._kept.clear()
    series_names._aliases.cache_clear()
    yield
    series_names._kept.clear()
    series_names._aliases.cache_clear()


Store = Callable[..., list[Recorded]]


@pytest.fixture
def store(django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> Store:
    """Store events as a request does: names are kept once they are committed."""

    def store_events(project: Project, *events: PostedEvent) -> list[Recorded]:
        with django_capture_on_commit_callbacks(execute=True):
            return record(project.pk, events)

    return store_events


def call(provider: str, model: str, **changes: Any) -> PostedEvent:
    return PostedEvent.model_validate(succeeded(provider=provider, model=model, **changes))


def series_of(project: Project) -> list[Pair]:
    fold()
    return sorted(Series.objects.filter(project=project).values_list("provider", "model"), key=str)


def test_spellings_of_a_provider_and_a_model_are_one_series(project: Project, store: Store) -> None:
    store(project, call("az.ai.openai", "GPT-4o"))
    store(project, call("azure.ai.openai", "gpt-4o"), call("Azure", " GPT-4o "))
    store(project, call("openai", "gpt-4o-2024-08-06"))
    assert series_of(project) == [("az.ai.openai", "GPT-4o"), ("openai", "gpt-4o-2024-08-06")]


def test_two_spellings_of_a_new_name_in_one_batch_are_one_series(
    project: Project, store: Store
) -> None:
    store(project, call("openai", "GPT-4o"), call("OpenAI", "gpt-4o"))
    assert series_of(project) == [("openai", "gpt-4o")]


def test_a_new_provider_is_named_without_the_api_that_was_called(
    project: Project, store: Store
) -> None:
    store(project, call("openai.responses", "gpt-4o"), call("My-Gateway.chat", "m"))
    store(project, call("openai.chat", "gpt-4o"), call("openai", "gpt-4o"))
    assert series_of(project) == [("My-Gateway", "m"), ("openai", "gpt-4o")]


def test_a_provider_that_was_named_with_its_api_keeps_that_name(
    project: Project, store: Store
) -> None:
    SeriesName.objects.create(
        project=project, kind="provider", key="openai.chat", name="openai.chat"
    )
    store(project, call("openai.chat", "gpt-4o"))
    assert series_of(project) == [("openai.chat", "gpt-4o")]


def test_a_blank_name_is_unknown(project: Project, store: Store) -> None:
    store(project, call(" ", "gpt-4o"))
    assert series_of(project) == [(None, "gpt-4o")]


def test_a_dated_model_that_answers_is_served_and_not_another_series(
    project: Project, store: Store
) -> None:
    store(project, call("openai", "gpt-4o", served_model="gpt-4o-2024-08-06"))
    store(project, call("openai", "GPT-4o", served_model="gpt-4o", upstream="a.example"))
    assert series_of(project) == [("openai", "gpt-4o")]
    served = (
        Event.objects.filter(project=project).order_by("served").values_list("served", flat=True)
    )
    assert list(served) == ["gpt-4o at a.example", "gpt-4o-2024-08-06"]


def test_an_event_sent_again_is_a_duplicate_whatever_its_name_became(
    project: Project, store: Store
) -> None:
    store(project, call("openai", "gpt-4o"))
    sent = call("OpenAI", "GPT-4o")
    assert [store(project, sent)[0].status for _ in range(2)] == [
        RecordStatus.CREATED,
        RecordStatus.DUPLICATE,
    ]


def test_outcomes_count_under_the_same_name(project: Project, store: Store) -> None:
    store(project, call("az.ai.openai", "gpt-4o"))
    outcome = PostedOutcome(
        minute=AT.replace(second=0, microsecond=0),
        source="bot",
        node="next_step",
        provider="azure",
        model="GPT-4o",
        ok_first=3,
    )
    record_outcomes(project.pk, [outcome])
    assert series_of(project) == [("az.ai.openai", "gpt-4o")]


def test_own_aliases_join_names_that_no_rule_knows(
    project: Project, store: Store, settings: LazySettings
) -> None:
    settings.FAILSOFT_PROVIDER_ALIASES = {"Our-Gateway": "azure"}
    settings.FAILSOFT_MODEL_ALIASES = {"planner-large": "gpt-4o"}
    store(project, call("azure.ai.openai", "GPT-4o"))
    store(project, call("our-gateway", "planner-large"))
    assert series_of(project) == [("azure.ai.openai", "GPT-4o")]


def test_projects_have_names_of_their_own(project: Project, store: Store) -> None:
    other = Project.objects.create(slug="p2", name="P2")
    store(project, call("openai", "GPT-4o"))
    store(other, call("openai", "gpt-4o"))
    assert (series_of(project), series_of(other)) == (
        [("openai", "GPT-4o")],
        [("openai", "gpt-4o")],
    )


def test_series_that_existed_before_keep_their_names(project: Project, store: Store) -> None:
    pairs = [("az.ai.openai", "gpt-4o"), ("azure", "GPT-4o"), ("azure", "other")]
    for provider, model in pairs:
        store(project, call(provider, model))
        fold()
        # As before there was one name for all spellings.
        SeriesName.objects.all().delete()
    migration = importlib.import_module("diagnostics.migrations.0002_since_0_1_0")
    migration.keep_names(apps, None)
    store(project, *(call(provider, model) for provider, model in pairs))
    assert series_of(project) == pairs
    # A new spelling joins the newest.
    store(project, call("azure_openai", "Gpt-4o"))
    assert ("azure", "gpt-4o") in series_of(project)


def test_known_spellings_cost_no_statement(
    project: Project, store: Store, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    store(project, call("openai", "GPT-4o"))
    with django_assert_num_queries(0):
        series_names.settle_names(project.pk, [{"provider": "openai", "model": "GPT-4o"}])


def test_a_purge_of_the_project_forgets_its_names(project: Project, store: Store) -> None:
    store(project, call("openai", "GPT-4o"))
    purge_project(project)
    assert not SeriesName.objects.filter(project=project).exists()
