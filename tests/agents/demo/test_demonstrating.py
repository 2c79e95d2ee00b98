"""Demo data in a database: complete, redacted, loaded once, removed without a trace."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Model, QuerySet

from agents.breakers.models import Breaker, BreakerTransition
from agents.demo.loading import DEMO_PRICES, DemoCounts, load, remove
from agents.demo.story import STORY
from agents.fix_patterns.models import FixPattern
from agents.fix_patterns.store import Hints, hints_for, known_patterns, policy_of
from agents.goals.models import Attempt, Goal
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import AlertState, Evaluation
from diagnostics.alerting.statuses import verdict_within
from diagnostics.console.now import now_context
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.prices.models import Price
from diagnostics.prices.prices import costs_of
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.store.aggregation import fold
from diagnostics.store.models import Event, EventIdentity, EventPayload
from diagnostics.store.run_models import AgentRun
from diagnostics.verdict.cause import Cause
from failsoft.events import PostedEvent as WireEvent
from failsoft.identifiers import uuid7
from failsoft.plans.results import validate_results
from failsoft.retry.answers import PlannerSchema
from plans.models.run import Run, RunStep
from tests.diagnostics.builders import degraded, make_event
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)
TABLES: tuple[type[Model], ...] = (
    Event,
    EventPayload,
    EventIdentity,
    Goal,
    Attempt,
    Run,
    RunStep,
    Provider,
    LanguageModel,
)


@pytest.fixture
def project() -> Project:
    return Project.objects.get_or_create(slug="default", defaults={"name": "Default"})[0]


def counts() -> dict[str, int]:
    return {table.__name__: table._default_manager.count() for table in TABLES}


def load_some(project: Project, now: datetime) -> DemoCounts:
    return load(project, now, volume=0.04)


def call(*arguments: str) -> str:
    output = StringIO()
    call_command("load_demo", *arguments, stdout=output)
    return output.getvalue().strip()


@pytest.mark.slow
def test_loading_writes_events_goals_and_models(project: Project) -> None:
    counted = load_some(project, NOW)
    stored = counts()
    assert stored["Event"] == stored["EventIdentity"] == counted.events > 1_000
    assert stored["Goal"] == counted.goals >= 30
    assert (stored["Provider"], stored["LanguageModel"]) == (3, 6)
    first = Event.objects.order_by("occurred_at").values_list("occurred_at", flat=True)[0]
    assert NOW - timedelta(days=14) <= first < NOW - timedelta(days=13)


@pytest.mark.slow
def test_loading_twice_adds_nothing(project: Project) -> None:
    load_some(project, NOW)
    before = counts()
    again = load_some(project, NOW + timedelta(hours=5))
    assert (again.events, again.goals) == (0, 0)
    assert counts() == before


@pytest.mark.slow
def test_an_interrupted_load_is_taken_up_where_it_began(project: Project) -> None:
    complete = load_some(project, NOW)
    before = counts()
    Goal.objects.filter(project=project).delete()
    Run.objects.filter(project=project).delete()
    lost = Event.objects.filter(project=project, node="plan", provider="mistral")
    ids = list(lost.values_list("event_id", flat=True))
    lost.delete()
    EventPayload.objects.filter(event_id__in=ids).delete()
    EventIdentity.objects.filter(event_id__in=ids).delete()
    again = load_some(project, NOW + timedelta(hours=5))
    assert (again.events, again.goals) == (len(ids), complete.goals)
    assert counts() == before


@pytest.mark.slow
def test_removal_takes_what_was_loaded_and_nothing_else(project: Project) -> None:
    mine = make_event(source="demo-support-bot", occurred_at=NOW.isoformat())
    record(project.pk, [mine])
    provider = Provider.objects.create(
        project=project, name="anthropic", adapter=Provider.Adapter.ANTHROPIC
    )
    model = LanguageModel.objects.create(project=project, provider=provider, name="own")
    goal = Goal.objects.create(
        id=uuid7(NOW, b"0123456789"),
        project=project,
        correlation_id="own",
        text_preview="own",
        language_model=model,
    )
    other = Project.objects.create(slug="other", name="Other")
    load_some(other, NOW)
    before = counts()
    loaded = load_some(project, NOW)
    removed = remove(project)
    assert removed == loaded
    assert counts() == before
    assert Goal.objects.filter(pk=goal.pk).exists()
    assert Event.objects.filter(project=project).get().event_id == mine.event_id


@pytest.mark.slow
def test_a_goal_of_ones_own_keeps_the_demo_model_it_was_given_to(project: Project) -> None:
    load_some(project, NOW)
    model = LanguageModel.objects.filter(project=project)[0]
    Goal.objects.create(
        id=uuid7(NOW, b"0123456789"),
        project=project,
        correlation_id="own",
        text_preview="own",
        language_model=model,
    )
    remove(project)
    assert LanguageModel.objects.filter(project=project).get() == model
    assert Provider.objects.filter(project=project).count() == 1


def test_no_demo_model_is_offered_or_ever_called(project: Project) -> None:
    load_some(project, NOW)
    assert not Provider.objects.filter(project=project, enabled=True).exists()
    assert not LanguageModel.objects.filter(project=project, enabled=True).exists()
    assert not LanguageModel.objects.filter(project=project, is_default=True).exists()


@pytest.mark.slow
def test_events_of_told_goals_agree_with_their_attempts(project: Project) -> None:
    load_some(project, NOW)
    for attempt in Attempt.objects.filter(project=project).select_related("goal"):
        event = Event.objects.get(
            project=project,
            correlation_id=attempt.goal.correlation_id,
            cycle=attempt.cycle,
            attempt=attempt.attempt,
        )
        assert event.occurred_at == attempt.occurred_at
        assert event.parse_error_type == (
            attempt.error_type if attempt.state == Attempt.State.INVALID else None
        )


def test_stored_runs_keep_the_results_contract(project: Project) -> None:
    load_some(project, NOW)
    for run in Run.objects.filter(project=project):
        rows = [
            {
                "step_id": step.step_id,
                "tool": step.tool,
                "ok": step.ok,
                "skipped": step.skipped,
                "reason": step.reason,
                "error": step.error,
                "output": step.output,
            }
            for step in run.steps.all()
        ]
        assert validate_results([*rows, run.meta]) == []
        assert (run.meta or {})["task_status"] == run.task_status


@pytest.mark.slow
def test_tokens_that_models_repeat_are_masked(project: Project) -> None:
    load_some(project, NOW)
    masked = EventPayload.objects.filter(project=project, raw_output_preview__contains="[REDACTED:")
    assert masked.exists()
    whole = EventPayload.objects.filter(
        project=project, raw_output_preview__regex=r"Bearer [0-9a-f]{20}"
    )
    assert not whole.exists()


@pytest.mark.slow
def test_now_page_names_the_incident_even_before_dawn(project: Project) -> None:
    before_dawn = datetime(2026, 11, 22, 4, 0, tzinfo=UTC)
    shift_clock(before_dawn)
    load(project, before_dawn)
    context = now_context(project.pk, read_selection({}), before_dawn)
    (card,) = context["cards"]
    said = "".join(map(str, card.headline))
    assert "anthropic/claude-haiku-4" in said
    assert "mostly truncated" in said
    assert "not us" in "".join(map(str, card.why))
    assert timedelta(hours=5) <= before_dawn - card.incident.began <= timedelta(hours=7)


@pytest.mark.slow
def test_the_demo_tells_the_whole_story_and_takes_it_back(project: Project) -> None:
    shift_clock(NOW)
    load(project, NOW)
    found = {row.slices.all()[0].slice["model"]: row for row in _incidents(project)}
    assert found["claude-haiku-4"].state == "open"
    smaller, resolved = found["gemini-2.5-flash"], found["gpt-4.1-mini"]
    assert (smaller.state, smaller.resolution_cause) == ("resolved", None)
    assert (resolved.state, resolved.resolution_cause) == ("resolved", "schema")
    assert resolved.acknowledged_at is not None
    assert "outdated" in resolved.notes.get().text
    breakers = Breaker.objects.filter(project=project)
    assert sorted(breakers.values_list("state", flat=True)) == ["closed", "open"]
    assert {one.transitions.count() for one in breakers} == {3}
    moved = BreakerTransition.objects.filter(breaker__in=breakers).order_by("id")
    assert list(moved) == sorted(moved, key=lambda one: one.at)
    (pattern,) = known_patterns(project.pk, policy_of(project.pk))
    assert pattern.standing == "active"
    outside = AgentRun.objects.filter(project=project, source="demo-crm-agent")
    assert outside.count() > 500
    assert not LanguageModel.objects.filter(name="gemini-2.5-flash").exists()
    # No real goal is held back or told anything by what is made up.
    goal = Goal(project=project, correlation_id="own")
    assert hints_for(goal, PlannerSchema.PLAN) == Hints()
    assert not breakers.exclude(provider__endswith=" (demo)").exists()
    remove(project)
    for table in (Incident, Breaker, FixPattern, AgentRun, Deploy, Evaluation, AlertState):
        assert not table._default_manager.exists(), table
    load(project, NOW)
    assert {row.slices.all()[0].slice["model"] for row in _incidents(project)} == {*found}


@pytest.mark.nightly
def test_only_what_the_story_tells_of_is_an_incident(project: Project) -> None:
    # At this hour the thin traffic of staging takes long to become its own baseline.
    now = datetime(2026, 11, 24, 10, 32, tzinfo=UTC)
    shift_clock(now)
    load(project, now)
    told = {one.model for one in STORY.incidents}
    assert {row.slices.all()[0].slice["model"] for row in _incidents(project)} == told
    assert [row.state for row in _incidents(project)].count("open") == 1


@pytest.mark.slow
def test_every_run_of_the_demo_has_a_cost_and_made_up_prices_say_so(project: Project) -> None:
    shift_clock(NOW)
    load_some(project, NOW)
    runs = list(AgentRun.objects.filter(project=project))
    assert None not in costs_of(project.pk, runs).values()
    assert DEMO_PRICES == "demo price"
    made_up = Price.objects.filter(project=project, edition=DEMO_PRICES)
    assert "gpt-4.1" not in made_up.values_list("model", flat=True)
    assert made_up.count() == 3
    remove(project)
    assert not made_up.exists()


@pytest.mark.slow
def test_a_price_of_ones_own_is_kept_beside_the_demo(project: Project) -> None:
    own = Price.objects.create(
        project=project,
        provider="anthropic",
        model="claude-haiku-4",
        valid_from=NOW.date() - timedelta(days=30),
        input_per_million=7,
        output_per_million=8,
    )
    load_some(project, NOW)
    rows = Price.objects.filter(project=project, model="claude-haiku-4", origin="own")
    assert rows.get() == own
    remove(project)
    assert rows.get() == own


def _incidents(project: Project) -> QuerySet[Incident]:
    return Incident.objects.filter(project=project).prefetch_related("slices")


@pytest.mark.slow
def test_command_says_in_one_line_what_it_did(project: Project) -> None:
    assert call("--now", NOW.isoformat(), "--volume", "0.04").startswith("Demo data loaded: ")
    assert call() == "Demo data is already loaded."
    assert call("--remove").startswith("Demo data removed: ")
    assert call("--remove") == "No demo data."


def test_command_names_a_project_that_does_not_exist() -> None:
    with pytest.raises(CommandError, match="project 'nowhere' not found; known: "):
        call("--project", "nowhere")


def test_command_refuses_a_moment_without_an_offset(project: Project) -> None:
    with pytest.raises(CommandError, match="--now"):
        call("--now", "2026-11-21T22:30:00")


def fail_local_goals(project: Project, number: int, now: datetime) -> None:
    """Record goals whose two attempts fail, as the tutorial's small model has them."""
    for goal in range(number):
        same = {
            "correlation_id": f"local-{goal}",
            "provider": "local",
            "model": "SmolLM2-135M",
            "environment": "local",
            "occurred_at": (now - timedelta(minutes=10 * goal + 1)).isoformat(),
        }
        calls = [make_event(attempt=attempt, **same) for attempt in (1, 2)]
        record(project.pk, [*calls, WireEvent.model_validate(degraded(**same))])
    fold()


@pytest.mark.slow
def test_failing_goals_of_the_local_model_leave_the_demos_sentence_alone(project: Project) -> None:
    shift_clock(NOW)
    load(project, NOW, volume=0.3)
    alone = verdict_within(project.pk, read_selection({}), NOW)
    fail_local_goals(project, 8, NOW)
    beside = verdict_within(project.pk, read_selection({}), NOW)
    assert "anthropic/claude-haiku-4" in beside.sentence
    assert (beside.sentence, beside.finding.cause) == (alone.sentence, Cause.MODEL)
    assert "local" not in beside.sentence


def test_the_local_model_is_judged_where_it_is_asked_for_or_alone(project: Project) -> None:
    shift_clock(NOW)
    fail_local_goals(project, 30, NOW)
    alone = verdict_within(project.pk, Selection(), NOW)
    record(project.pk, [make_event(environment="prod", occurred_at=NOW.isoformat())])
    named = read_selection({"environment": "local"})
    narrowed = read_selection({"model": "SmolLM2-135M"})
    for selection in (named, narrowed):
        assert verdict_within(project.pk, selection, NOW).state == alone.state != "ok"
    assert verdict_within(project.pk, Selection(), NOW).state == "not_enough_data"
