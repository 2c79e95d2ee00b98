"""The page of one model, read as HTML."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.breakers.models import Breaker
from agents.breakers.store import BreakerScope, ManualChange, isolate_scope
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.statuses import store_statuses
from diagnostics.ingest.assessments import PostedAssessment, record_assessments
from diagnostics.ingest.recording import record
from diagnostics.prices.models import Price
from diagnostics.store.aggregation import fold
from diagnostics.store.run_models import AgentRun, AssessedAs
from diagnostics.web.model_links import model_url
from failsoft.retry.breaker import BreakerKind
from tests.console import Role, make_member, make_model, post_runs
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db
NAMES = [("fake", "fake-1"), (None, None), ("-", "meta/llama 3"), ("größe", "..'\"<b>&\u202e")]


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode().replace("\u202f", " ")


def story(project: Project, at: datetime) -> None:
    """A calm week; then a third of first attempts is cut off, and half of those repaired."""
    tokens = {"input_tokens": 800, "output_tokens": 200, "latency_ms": 900}
    post_runs(project, 400, 0, at - timedelta(days=2), **tokens)
    post_runs(project, 60, 0, at, attempt=1, **tokens)
    cut = [
        make_event(
            occurred_at=(at - timedelta(seconds=second)).isoformat(),
            parse_error_type="truncated",
            correlation_id=f"cut-{second}",
            **tokens,
        )
        for second in range(40)
    ]
    again = [
        make_event(
            occurred_at=(at - timedelta(seconds=second)).isoformat(),
            parse_error_type="truncated",
            attempt=2,
            correlation_id=f"again-{second}",
            **tokens,
        )
        for second in range(20)
    ]
    record(project.pk, [*cut, *again])
    post_runs(project, 20, 0, at, attempt=2, **tokens)
    fold()


def test_the_page_says_since_when_and_which_kind(
    client: Client, project: Project, at: datetime
) -> None:
    story(project, at)
    html = page(client, model_url("fake", "fake-1"))
    assert "Degrading since <time" in html
    assert "truncated" in html
    assert "What to change" in html
    assert 'class="curve"' in html


def test_retries_are_weighed(client: Client, project: Project, at: datetime) -> None:
    story(project, at)
    html = page(client, model_url("fake", "fake-1"))
    assert "20 of 40" in html
    assert "of 40 runs whose first attempt failed" in html
    assert "No data (no run with that many retries)" in html
    assert "40 calls" in html


def test_money_is_shown_where_a_price_is_known(
    client: Client, project: Project, at: datetime
) -> None:
    story(project, at)
    assert "No price for this model" in page(client, model_url("fake", "fake-1"))
    Price.objects.create(
        project=project,
        provider="fake",
        model="fake-1",
        input_per_million=Decimal(10),
        output_per_million=Decimal(50),
        valid_from=(at - timedelta(days=40)).date(),
    )
    html = page(client, model_url("fake", "fake-1"))
    # 40 retries of 800 tokens in and 200 out.
    assert "$0.72" in html
    assert "custom price" in html


@pytest.mark.parametrize(("provider", "model"), NAMES, ids=["plain", "null", "slash", "odd"])
def test_any_name_has_a_page(
    client: Client, project: Project, at: datetime, provider: str | None, model: str | None
) -> None:
    post_runs(project, 30, 2, at, provider=provider, model=model)
    fold()
    html = page(client, model_url(provider, model))
    assert "<b>&\u202e" not in html
    assert "of 32 runs" in html


def test_unknown_and_foreign_models_are_not_found(
    client: Client, project: Project, at: datetime
) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_runs(other, 30, 0, at, model="theirs")
    make_model(other, "registered")
    fold()
    for name in ("theirs", "registered", "nobody"):
        assert client.get(model_url("fake", name)).status_code == 404


def test_a_model_that_was_never_called_has_an_empty_page(client: Client, project: Project) -> None:
    make_model(project)
    html = page(client, model_url("fake", "fake-1"))
    assert "No calls in this range." in html
    assert "Not enough data." in html


def test_valid_answers_that_were_said_to_be_bad_are_a_figure_of_their_own(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 4, 0, at)
    fold()
    path = model_url("fake", "fake-1")
    assert "Valid but worse" not in page(client, path)
    runs = list(AgentRun.objects.values_list("correlation_id", flat=True))
    said = [
        PostedAssessment(correlation_id=run, verdict=verdict, source="judge", at=at)
        for run, verdict in zip(runs, (AssessedAs.BAD, AssessedAs.GOOD), strict=False)
    ]
    record_assessments(project.pk, said)
    html = page(client, path)
    assert "<dt>Valid but worse</dt><dd><b>50.0 %</b> <small>of 2 assessed</small>" in html


def test_the_length_of_valid_answers_is_told_before_and_after(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 30, 0, at - timedelta(days=3), output_tokens=200)
    post_runs(project, 30, 0, at, output_tokens=50)
    record(project.pk, [make_event(occurred_at=at.isoformat(), output_tokens=4_000)])
    fold()
    html = page(client, model_url("fake", "fake-1"))
    assert "Valid answers had 50 output tokens on average, 200 in the baseline week." in html


def test_the_number_of_queries_does_not_grow(
    client: Client, project: Project, at: datetime
) -> None:
    story(project, at)
    path = model_url("fake", "fake-1")
    store_statuses(project.pk, clock.now())
    page(client, path)
    with CaptureQueriesContext(connection) as few:
        page(client, path)
    for number in range(15):
        post_runs(project, 25, 3, at, prompt_version=f"v{number}")
    fold()
    store_statuses(project.pk, clock.now())
    page(client, path)
    with CaptureQueriesContext(connection) as many:
        html = page(client, path)
    # Two of them depend on whether an incident hits the model, none on the 15 versions.
    assert max(len(few), len(many)) <= 31
    assert abs(len(many) - len(few)) <= 2
    assert len(html.encode()) < 60_000


def test_breakers_are_moved_from_here_and_lead_back(client: Client, project: Project) -> None:
    make_model(project)
    path = model_url("fake", "fake-1")
    line = BreakerScope(project.pk, "fake", "fake-1", "plan", BreakerKind.TRANSPORT)
    isolate_scope(line, ManualChange("eva", "too many faults"))
    html = page(client, path)
    assert "Isolated" in html
    assert "too many faults" in html
    breaker = Breaker.objects.get()
    answer = client.post(f"/breakers/{breaker.pk}/close/", {"reason": "it is well", "next": path})
    assert (answer.status_code, answer.headers["Location"]) == (302, path)
    assert Breaker.objects.get().state == "closed"


@pytest.mark.parametrize("away", ["https://example.org/", "//example.org", "javascript:1", ""])
def test_a_form_never_leads_out_of_the_console(client: Client, project: Project, away: str) -> None:
    line = BreakerScope(project.pk, "fake", "fake-1", "plan", BreakerKind.TRANSPORT)
    isolate_scope(line, ManualChange("eva", "faults"))
    breaker = Breaker.objects.get()
    told = {"reason": "it is well", "next": away}
    answer = client.post(f"/breakers/{breaker.pk}/close/", told)
    assert answer.headers["Location"] == "/breakers/"


def test_viewers_see_breakers_and_move_none(client: Client, project: Project) -> None:
    make_model(project)
    line = BreakerScope(project.pk, "fake", "fake-1", "plan", BreakerKind.TRANSPORT)
    isolate_scope(line, ManualChange("eva", "faults"))
    client.force_login(make_member(project, "vic", Role.VIEWER))
    html = page(client, model_url("fake", "fake-1"))
    assert "Isolated" in html
    assert "/isolate/" not in html
