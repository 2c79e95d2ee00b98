"""What two places say of one incident at one moment is one onset and one rate."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import unescape
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core import mail as sent
from django.core.mail import EmailMultiAlternatives
from django.test import Client
from django.urls import reverse

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.attribution import UNCLEAR
from diagnostics.alerting.evaluator import evaluate
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.senders.mail import prepare_mail
from diagnostics.alerting.senders.messages import acknowledge_url
from diagnostics.alerting.statuses import stored_statuses
from diagnostics.analysis.series import SeriesKey
from diagnostics.figures import rate_percent, write_moment
from diagnostics.outbound.mail import render_html, render_text
from diagnostics.reports.archive import report_for
from diagnostics.reports.periods import ReportPeriod
from diagnostics.reports.queries import ReportSubject, summarise
from diagnostics.reports.rendering import Letter, moment_of
from diagnostics.store.aggregation import fold
from diagnostics.verdict.verdicts import Verdict
from tests.console import make_member
from tests.diagnostics.alert_calls import MINUTE
from tests.diagnostics.alerting.incident_stories import (
    DIMENSIONS,
    HOUR,
    OLD,
    IncidentStory,
    Trouble,
    draw_story,
    write_calls,
    write_story,
)
from tests.diagnostics.alerting.notifications.building import make_channel, travel
from tests.shifted_clock import AFTERNOON, shift_clock

pytestmark = pytest.mark.django_db
STORIES = 38
INCIDENTS = 40
SAID_AGAIN = 6
"""Every so many-th story is read once more a minute later."""
SENTENCE = re.compile(
    r"Degrading (?:more and more )?since (.+?): .+?, ([\d.]+ %) of ([\d,]+ (?:run|call)s?)"
)
Said = tuple[str, str, str]
"""Since when, how often, of how many: as it is printed."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A project with a story, a member and a key."""

    project: Project
    story: IncidentStory
    client: Client
    headers: Mapping[str, str]

    def page(self, path: str) -> str:
        """Return a page as text, its times in ISO 8601."""
        return plain(self.client.get(path).content.decode())

    def json(self, path: str) -> Any:
        """Return an answer of the API."""
        return self.client.get(path, headers=dict(self.headers)).json()

    def causes(self, now: datetime) -> Sequence[Verdict]:
        """Return the incidents of the stored verdict: what all places are held to."""
        stored = stored_statuses(self.project.pk, now)
        assert stored is not None
        return [one for one in (stored.verdict, *stored.verdict.others) if one.since]


def plain(text: str) -> str:
    """Return a text as one line without tags; a time is what it holds for machines."""
    timed = re.sub(r'<time datetime="([^"]*)"[^>]*>.*?</time>', r"\1", text)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", timed)))


def sentences(text: str) -> set[Said]:
    """Return every degradation that a text speaks of."""
    return {match.groups() for match in SENTENCE.finditer(text)}  # type: ignore[misc]


def said(verdict: Verdict, since: str) -> Said:
    """Return how a verdict is to be printed."""
    rate = verdict.rate
    assert rate is not None
    noun = rate.noun if rate.total == 1 else f"{rate.noun}s"
    return since, rate_percent(rate.share).replace("\u202f", " "), f"{rate.total:,} {noun}"


def in_iso(at: datetime | None) -> str:
    """Write a time as pages and the API do."""
    assert at is not None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def in_mails(at: datetime | None) -> str:
    assert at is not None
    return write_moment(at)


def watch_all(stories: Iterable[int]) -> list[Watched]:
    """Return projects whose incidents have just fired."""
    shift_clock()
    now = clock.now()
    made = [_watch(number, draw_story(number, AFTERNOON), AFTERNOON) for number in stories]
    _evaluate(now)
    return made


def _evaluate(now: datetime) -> None:
    while fold():
        pass
    while evaluate(now):
        pass


def _watch(number: int, story: IncidentStory, now: datetime) -> Watched:
    project = Project.objects.create(slug=f"p-{number}", name=f"P {number}")
    make_channel(project)
    client = Client()
    client.force_login(make_member(project, f"member-{number}"))
    token = issue_key(project, "k", [Scope.READ]).text
    write_story(project, story, now)
    return Watched(project, story, client, {"Authorization": f"Bearer {token}"})


@pytest.mark.slow
def test_all_places_print_one_onset_and_one_rate_of_40_incidents() -> None:
    watched, seen = watch_all(range(STORIES)), Counter[str]()
    now = clock.now()
    for one in watched:
        causes = one.causes(now)
        assert causes, one.project.slug
        _check_project(one, causes, now)
        for incident in _put_down(one, causes):
            cause = _cause_of(incident, causes)
            seen[f"{cause.finding.cause} {cause.rate and cause.rate.noun}"] += 1
            _check_incident(one, incident, cause)
            _check_mail(incident, cause)
    assert seen.total() >= INCIDENTS
    assert len(seen) >= 8, seen


def test_a_source_that_no_model_shows_alone_has_one_onset_and_the_models_it_touches_degrade() -> (
    None
):
    shift_clock()
    now = clock.now()
    trouble = Trouble({"source": "shop"}, AFTERNOON - 3 * HOUR, 0.1, "truncated")
    places = [
        dict(zip(DIMENSIONS, ("prod", "plan", "acme", f"m-{model}", OLD, source, "P"), strict=True))
        for model, source in product(range(12), ("crm", "shop", "web"))
    ]
    one = _watch(0, IncidentStory("run", places, 220.0, 0.01, [trouble]), AFTERNOON)
    _evaluate(now)
    (cause,) = causes = one.causes(now)
    assert (cause.finding.cause, cause.finding.value) == ("source", "shop")
    assert cause.since_low is not None
    assert cause.since_high is not None
    assert cause.since_low <= trouble.since <= cause.since_high
    _check_project(one, causes, now)
    items = one.json(reverse("api_series"))["items"]
    assert {item["state"] for item in items} == {"degrading"}
    assert not Incident.objects.exists()


@pytest.mark.slow
def test_a_minute_later_all_places_print_one_other_rate() -> None:
    some = watch_all(range(0, STORIES, SAID_AGAIN))
    before = {one.project: one.causes(clock.now()) for one in some}
    travel(MINUTE)
    now = clock.now()
    for one in some:
        write_calls(one.project, one.story, [(now, timedelta(minutes=20))])
    while evaluate(now):
        pass
    for one in some:
        causes = one.causes(now)
        assert [cause.rate for cause in causes] != [cause.rate for cause in before[one.project]]
        _check_project(one, causes, now)
        for incident in _put_down(one, causes):
            _check_incident(one, incident, _cause_of(incident, causes))


def _put_down(one: Watched, causes: Sequence[Verdict]) -> list[Incident]:
    """Return the incidents that have a cause; what only a count fired for has none."""
    rows = Incident.objects.filter(project=one.project).order_by("pk")
    onsets = {cause.since for cause in causes}
    return [
        row
        for row in rows
        if row.latest_verdict.since and (row.cause not in UNCLEAR or row.onset in onsets)
    ]


def _beside(one: Watched, shown: set[Said], expected: set[Said]) -> set[Said]:
    """Return what is said of incidents that fired beside the causes, without a clear one."""
    unclear = Incident.objects.filter(project=one.project, cause__in=UNCLEAR)
    onsets = {in_iso(row.onset) for row in unclear}
    return {words for words in shown - expected if words[0] in onsets}


def _cause_of(incident: Incident, causes: Iterable[Verdict]) -> Verdict:
    named = (incident.cause, incident.cause_value)
    (found,) = (c for c in causes if (str(c.finding.cause), c.finding.value) == named)
    assert incident.onset == found.since
    return found


def _check_project(one: Watched, causes: Sequence[Verdict], now: datetime) -> None:
    """Compare what is said of the whole project: each cause once, and no other."""
    expected = {said(cause, in_iso(cause.since)) for cause in causes}
    shown = sentences(one.page(reverse("now")))
    assert shown == expected | _beside(one, shown, expected)
    assert sentences(one.page(reverse("incidents"))) <= shown
    told = one.json(reverse("api_verdict"))
    rates = [(cause["since"], cause["rate"], cause["runs"]) for cause in told["incidents"]]
    assert rates == [_in_api(cause) for cause in causes]
    assert (told["since"], told["rate"], told["runs"]) == rates[0]
    onsets = {key: cause.since for cause in reversed(causes) for key in cause.touched}
    for item in one.json(reverse("api_series"))["items"]:
        key = SeriesKey(*(item[name] for name in SeriesKey._fields))
        if item["state"] == "degrading" and key in onsets:
            assert datetime.fromisoformat(item["since"]) == onsets[key]
    _check_report(one, causes, now)


def _in_api(cause: Verdict) -> tuple[str, float, int]:
    assert cause.since is not None
    assert cause.rate is not None
    return cause.since.isoformat().replace("+00:00", "Z"), cause.rate.share, cause.rate.total


def _check_report(one: Watched, causes: Iterable[Verdict], now: datetime) -> None:
    today = now.date()
    period = ReportPeriod(today - timedelta(days=6), today + timedelta(days=1), ZoneInfo("UTC"))
    subject = ReportSubject(one.project, "P", "", "weekly", period)
    document = summarise(subject, now)
    expected = {said(cause, moment_of(cause.since, document)) for cause in causes if cause.since}
    shown = {"letter": Letter(document), "personal": {}}
    for render in (render_text, render_html):
        assert sentences(plain(render("report", shown))) == expected
    # A model of the verdict has its onset, so that it cannot be folded away.
    models = {(who.provider, who.model) for cause in causes for who in cause.touched}
    for model in document.models:
        is_named = tuple(model.name.split("/", 1)) in models
        assert is_named == (model.since in {cause.since for cause in causes})
    kept = report_for(subject)
    assert sentences(one.page(reverse("report", args=[kept.pk]))) == expected
    kept.delete()


def _check_incident(one: Watched, incident: Incident, cause: Verdict) -> None:
    """Compare the page of an incident, and what the API says of it."""
    told = said(cause, in_iso(cause.since))
    page = one.page(reverse("incident", args=[incident.pk]))
    assert sentences(page.partition("Timeline")[0]) == {told}
    onset, share, of = told
    assert f" since {onset}, for " in page
    assert f"{share} of {of} (95 % interval" in page
    listed = one.json(reverse("api_incidents"))["items"]
    (row,) = (item for item in listed if item["id"] == incident.pk)
    assert (row["sentence"], row["onset"]) == (cause.sentence, _in_api(cause)[0])
    found = one.json(reverse("api_incident", args=[incident.pk]))
    assert found["sentence"] == cause.sentence
    assert found["verdict_now"]["sentence"] == cause.sentence
    assert (found["onset"], found["verdict_now"]["rate"]) == _in_api(cause)[:2]


def _check_mail(incident: Incident, cause: Verdict) -> None:
    """Compare both parts of the mail, and the page that its link leads to."""
    row = Notification.objects.get(incident=incident)
    prepare_mail(row)()
    mail = sent.outbox[-1]
    assert isinstance(mail, EmailMultiAlternatives)
    assert cause.since is not None
    told = said(cause, write_moment(cause.since, "lately", now=row.created_at))
    parts = [plain(str(part)) for part in (mail.body, mail.alternatives[0][0])]
    assert plain(str(mail.subject)).endswith(f", {told[1]} of {told[2]}")
    for text in parts:
        assert sentences(text) == {told}
    _, share, of = told
    for text in parts:
        assert re.search(rf"Since:? ?{in_mails(cause.since)}", text)
        assert re.search(rf"Rate:? ?{share} of {of}", text)
    asked = plain(Client().get(acknowledge_url(row)).content.decode())
    assert sentences(asked) == {said(cause, in_iso(cause.since))}
    assert f", since {in_iso(cause.since)} " in asked
