"""The models page, the comparison and the prices, read as HTML."""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.prices.models import Price
from diagnostics.web.model_links import model_url
from failsoft.events import PostedEvent
from tests.console import Role, make_member, post_runs
from tests.diagnostics.alerting.notifications.building import make_incident
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>/\u202e'\"&{{7*7}}"


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project, role=Role.ADMIN))
    return client


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode().replace("\u202f", " ")


def failures(project: Project, number: int, at: datetime, **fields: object) -> None:
    """Record failed first attempts that were cut off."""
    made: list[PostedEvent] = [
        make_event(
            occurred_at=(at - timedelta(seconds=second)).isoformat(),
            parse_error_type="truncated",
            correlation_id=f"cut-{second}",
            **fields,
        )
        for second in range(number)
    ]
    record(project.pk, made)


def story(project: Project, at: datetime) -> None:
    """A calm week, then an hour in which half of the calls are cut off."""
    post_runs(project, 400, 0, at - timedelta(days=2))
    post_runs(project, 60, 0, at)
    failures(project, 60, at)


def test_the_matrix_names_the_worst_model_and_kind(
    client: Client, project: Project, at: datetime
) -> None:
    story(project, at)
    html = page(client, "/models/")
    assert "fake/fake-1 fails 50.0 % of 120 calls in 24 h (+50.0 pt), mostly truncated." in html
    assert "Each attempt is a call, of the model it was sent to" in html
    assert 'class="num more-4"' in html
    assert f'href="{model_url("fake", "fake-1")}"' in html


def test_a_model_with_an_open_incident_is_named_without_a_baseline_week(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 40, 20, at, provider="anthropic", model="young")
    make_incident(project, "young")
    html = page(client, "/models/")
    headline = html.split("<h1>")[1].split("</h1>")[0]
    assert "31 % of 412 runs" in headline
    assert "Not enough data" not in headline
    assert "Incident #" in html
    assert "Not in the table" not in html


def test_an_incident_of_a_model_without_calls_in_the_range_is_told_apart_from_the_table(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 400, 0, at - timedelta(days=2))
    post_runs(project, 60, 0, at)
    make_incident(project, "gone")
    assert "no calls in 24 h. In the table: The model is within its baseline." in page(
        client, "/models/"
    )


def test_an_empty_project_is_told_how_to_fill_the_page(client: Client) -> None:
    html = page(client, "/models/")
    assert "No calls recorded." in html
    assert "Baseline: previous 7 d." not in html
    assert "Load demo data" in html
    # A command would act on the default project.
    assert "manage.py" not in html


def test_a_filter_without_a_match_offers_a_way_out(
    client: Client, project: Project, at: datetime
) -> None:
    story(project, at)
    assert "No call matches." in page(client, "/models/?model=other")


def test_a_filter_that_rollups_cannot_meet_is_named(
    client: Client, project: Project, at: datetime
) -> None:
    story(project, at)
    html = page(client, "/models/?attempt=2")
    assert "not applied on this page" in html


def test_hostile_names_are_text_and_their_links_lead_back(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 30, 0, at, provider=HOSTILE, model=HOSTILE)
    html = page(client, "/models/")
    assert "<script>alert" not in html
    assert model_url(HOSTILE, HOSTILE) in html


def test_other_projects_are_not_shown(client: Client, project: Project, at: datetime) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_runs(other, 30, 0, at, model="their-model")
    for path in ("/models/", "/compare/", "/settings/prices/"):
        assert "their-model" not in page(client, path)


@pytest.mark.parametrize("path", ["/models/", "/compare/", "/compare/?with=deploy&matched=on"])
def test_the_number_of_queries_does_not_grow(
    client: Client, project: Project, at: datetime, path: str
) -> None:
    story(project, at)
    page(client, path)
    with CaptureQueriesContext(connection) as few:
        page(client, path)
    for number in range(12):
        post_runs(project, 25, 1, at, model=f"model-{number}", prompt_version="v9")
    with CaptureQueriesContext(connection) as many:
        html = page(client, path)
    assert len(many) == len(few) <= 18
    assert len(html.encode()) < 60_000


def test_a_comparison_says_what_differs_and_how_surely(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 90, 10, at - timedelta(hours=26))
    post_runs(project, 60, 40, at)
    failures(project, 40, at)
    html = page(client, "/compare/?with=period&range=24h")
    assert "This period degrades more than the previous period: 40.0 % of 100 runs" in html
    assert " against 10.0 % of 100 runs" in html
    assert "95 % interval" in html
    assert "worse" in html


def test_few_calls_are_not_compared(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 10, 9, at)
    html = page(client, "/compare/")
    assert "Not enough data to compare." in html
    assert "n &lt; 20" in html


def test_b_has_filters_of_its_own(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 50, 0, at, model="a-1")
    post_runs(project, 30, 20, at, model="b-1")
    html = page(client, "/compare/?with=same&model=a-1&b=model:%3Db-1")
    assert "a-1 degrades less than b-1: 0.0 % of 50 runs against 40.0 % of 50 runs" in html


def test_only_versions_that_both_have_are_compared(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 40, 0, at, model="a-1", prompt_version="old")
    post_runs(project, 40, 40, at, model="a-1", prompt_version="new")
    post_runs(project, 40, 0, at, model="b-1", prompt_version="old")
    query = "/compare/?with=same&model=a-1&b=model:%3Db-1"
    assert "a-1 degrades more than b-1" in page(client, query)
    html = page(client, f"{query}&matched=on")
    assert "No clear difference" in html
    assert "1 shared prompt and schema version." in html


def test_the_latest_deploy_divides_the_sides(
    client: Client, project: Project, at: datetime
) -> None:
    assert "No deploy before this time" in page(client, "/compare/?with=deploy")
    Deploy.objects.create(
        project=project, at=at - timedelta(hours=1), kind="release", version="2026.11"
    )
    assert "2026.11" in page(client, "/compare/?with=deploy")


def test_b_has_the_same_time_where_it_is_chosen_by_pickers(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 44, 6, at, model="gpt-4.1")
    post_runs(project, 200, 0, at, model="gpt-4.1-mini")
    post_runs(project, 40, 60, at - timedelta(hours=25), model="gpt-4.1-mini")
    mine, other = ({f"{side}_model": f"provider:=fake model:={name}"}
        for side, name in (("a", "gpt-4.1"), ("b", "gpt-4.1-mini")))  # fmt: skip
    query = f"/compare/?{urlencode(mine | other)}"
    html = page(client, query)
    assert "gpt-4.1 degrades more than gpt-4.1-mini: 12.0 % of 50 runs against 0.0 %" in html
    assert "Same time (default)" in html
    assert '<option value="provider:=fake model:=gpt-4.1" selected>fake/gpt-4.1</option>' in html
    html = page(client, f"{query}&with=period")
    assert "degrades less" in html
    assert "Same time (default)" in html
    rows = client.get(f"/export/compare.csv?{urlencode(mine | other)}").content.decode()
    assert rows.splitlines()[1].startswith("Degraded,gpt-4.1,gpt-4.1-mini,0.12,6,50,0.0,0,200,")


def test_any_deploy_can_be_chosen(client: Client, project: Project, at: datetime) -> None:
    for number in (3, 2, 1):
        when = at - timedelta(hours=number)
        Deploy.objects.create(project=project, at=when, kind="release", version=f"r{number}")
    first = Deploy.objects.get(version="r3")
    html = page(client, f"/compare/?with=deploy&deploy={first.pk}")
    assert "Deploy: release <b>r3</b>" in html
    assert "Deploy: release <b>r1</b>" in page(client, "/compare/?with=deploy")


def test_whole_hours_are_said_where_the_range_is_cut(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 30, 0, at, prompt_version="v1")
    assert "Counted in whole hours" in page(client, "/compare/?prompt_version=v1")
    assert "hole hours" not in page(client, "/compare/?model=fake-1")


def test_models_are_turned_page_by_page(client: Client, project: Project, at: datetime) -> None:
    for number in range(23):
        post_runs(project, 1, 0, at, model=f"model-{number}")
    html = page(client, "/models/")
    assert "1 to 20 of 23 models" in html
    last = page(client, "/models/?page=2")
    assert "21 to 23 of 23 models" in last
    names = {f"model-{n}</a>" for n in range(23)}
    assert {n for n in names if n in html} ^ {n for n in names if n in last} == names


def test_nonsense_is_answered_with_a_page(client: Client) -> None:
    query = "with=nonsense&b=model:(&b_from=x&b_to=y&range=z&from=q&matched=?"
    assert "Not enough data" in page(client, f"/compare/?{query}")


PRICE = {
    "provider": "fake",
    "model": "fake-1",
    "input_per_million": "2.5",
    "output_per_million": "10",
    "valid_from": "2026-01-01",
}


def test_a_price_is_set_corrected_and_removed_and_noted(client: Client, project: Project) -> None:
    client.post("/settings/prices/", PRICE)
    client.post("/settings/prices/", {**PRICE, "input_per_million": "3"})
    row = Price.objects.get(project=project)
    assert row.input_per_million == Decimal(3)
    assert "$10.00" in page(client, "/settings/prices/")
    client.post(f"/settings/prices/{row.pk}/remove/")
    assert not Price.objects.exists()
    noted = AuditEntry.objects.filter(action__startswith="price.")
    assert [entry.action for entry in noted.order_by("number")] == [
        "price.set",
        "price.set",
        "price.removed",
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"input_per_million": "-1"}, {"output_per_million": "x"}, {"model": ""}],
    ids=["negative", "no number", "no model"],
)
def test_what_is_no_price_is_refused_with_a_reason(client: Client, wrong: dict[str, str]) -> None:
    answer = client.post("/settings/prices/", {**PRICE, **wrong})
    assert answer.status_code == 200
    assert "errors" in answer.content.decode()
    assert not Price.objects.exists()


def test_a_listed_price_or_one_of_another_project_cannot_be_removed(
    client: Client, project: Project
) -> None:
    other = Project.objects.create(slug="o", name="Other")
    told = {**PRICE, "valid_from": clock.now().date()}
    for row in (
        Price.objects.create(project=other, **told),
        Price.objects.create(project=project, origin="listed", **told),
    ):
        assert client.post(f"/settings/prices/{row.pk}/remove/").status_code == 404
    assert Price.objects.count() == 2


def test_only_administrators_set_prices(client: Client, project: Project) -> None:
    client.force_login(make_member(project, "bo", Role.OPERATOR))
    assert client.post("/settings/prices/", PRICE).status_code == 403
    assert not Price.objects.exists()


def names_of(html: str) -> list[str]:
    """Give the models of the matrix in their order."""
    return re.findall(r'<th scope="row"><a class="name" href="[^"]*">([^<]+)</a>', html)


def test_the_matrix_is_sorted_by_any_column_and_its_head_says_so(
    client: Client, project: Project, at: datetime
) -> None:
    failures(project, 30, at, model="b")
    post_runs(project, 200, 0, at, model="a")
    post_runs(project, 50, 0, at, model="c")
    assert names_of(page(client, "/models/"))[0] == "b"
    html = page(client, "/models/?sort=calls")
    assert names_of(html) == ["a", "c", "b"]
    assert html.count("aria-sort=") == 1
    assert 'aria-sort="descending"><a href="?sort=-calls">Calls' in html
    assert names_of(page(client, "/models/?sort=-calls")) == ["b", "c", "a"]
    assert names_of(page(client, "/models/?sort=model")) == ["a", "b", "c"]
    assert names_of(page(client, "/models/?sort=kind:truncated"))[0] == "b"
    html = page(client, "/models/?sort=kind:nothing&range=7d")
    assert "aria-sort=" not in html
    assert names_of(html)[0] == "b"
    assert 'name="sort" value="calls"' in page(client, "/models/?sort=calls"), "filters keep it"


def test_another_order_asks_the_database_nothing_more(
    client: Client, project: Project, at: datetime
) -> None:
    story(project, at)
    page(client, "/models/")
    counts = []
    for path in ("/models/", "/models/?sort=tokens"):
        with CaptureQueriesContext(connection) as queries:
            page(client, path)
        counts.append(len(queries))
    assert counts[0] == counts[1]
