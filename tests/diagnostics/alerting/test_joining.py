"""Which incident a slice belongs to, and how urgent and how named it is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.alerting.attribution import Attribution, VerdictCache, find_incident, is_back
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.states import rank
from diagnostics.alerting.wording import widest_of
from diagnostics.analysis.series import SeriesKey
from diagnostics.verdict.cause import Cause, Finding
from diagnostics.verdict.verdicts import Verdict
from diagnostics.verdict.wording import Sentence

HOUR = timedelta(hours=1)

AT = datetime(2026, 11, 21, 14, tzinfo=UTC)
MODEL = Attribution("model", "acme/m-1", "acme", "m-1")


def opened(
    number: int, seconds: float, cause: str, value: str = "", *models: tuple[str, str]
) -> Incident:
    at = AT + timedelta(seconds=seconds)
    incident = Incident(pk=number, fired_at=at, cause=cause, cause_value=value)
    incident.touched_models = set(models)
    return incident


KNOWN = opened(1, 0, "model", "acme/m-1", ("acme", "m-1"))
OUTAGE = opened(2, 0, "provider_outage", "acme")


@pytest.mark.parametrize(
    ("attribution", "now", "known", "joins"),
    [
        # One cause, whatever the models and whenever it fires.
        (Attribution("prompt", "v5", "a", "x"), 9_999, opened(1, 0, "prompt", "v5"), True),
        (Attribution("prompt", "v6", "a", "x"), 60, opened(1, 0, "prompt", "v5"), False),
        # Nobody knows yet: two troubles seldom begin together.
        (Attribution("", "", "a", "x"), 120, opened(1, 0, "mixed", ""), True),
        (Attribution("", "", "a", "x"), 121, opened(1, 0, "mixed", ""), False),
        (Attribution("", "", "a", "x"), 60, opened(1, 0, "prompt", "v5"), False),
        # An outage takes in its models for as long as it lasts.
        (MODEL, 9_999, OUTAGE, True),
        (Attribution("model", "b/m", "b", "m"), 60, OUTAGE, False),
        # A model that is in trouble already.
        (MODEL, 9_999, KNOWN, True),
        (Attribution("", "", "acme", "m-1"), 9_999, KNOWN, True),
        # Two causes at one model are two incidents.
        (Attribution("prompt", "v5", "acme", "m-1"), 60, KNOWN, False),
        (Attribution("", "", None, None), 9_999, KNOWN, False),
    ],
)
def test_slices_join(attribution: Attribution, now: float, known: Incident, *, joins: bool) -> None:
    assert (find_incident(attribution, AT + timedelta(seconds=now), [known]) == known) is joins


@pytest.mark.parametrize(
    ("attribution", "cause", "value", "after", "back"),
    [
        (MODEL, "model", "acme/m-1", 3_600, True),
        (MODEL, "model", "acme/m-1", 3_601, False),
        # Nobody knew the cause, then or now.
        (MODEL, "mixed", "", 60, True),
        (Attribution("", "", "acme", "m-1"), "model", "acme/m-1", 60, True),
        # Another cause at the same series is another trouble.
        (Attribution("prompt", "v5", "acme", "m-1"), "model", "acme/m-1", 60, False),
    ],
)
def test_what_fires_again_soon_is_the_incident_that_ended(
    attribution: Attribution, cause: str, value: str, after: int, *, back: bool
) -> None:
    ended = Incident(cause=cause, cause_value=value, cleared_at=AT)
    assert is_back(attribution, AT + timedelta(seconds=after), ended) is back


def test_of_two_causes_at_once_a_slice_is_put_down_to_the_one_that_names_it() -> None:
    at = datetime(2026, 11, 21, 14, tzinfo=UTC)
    one, other = SeriesKey("prod", "plan", "acme", "m-1"), SeriesKey("prod", "plan", "b", "x")
    model = degrading(Cause.MODEL, "acme/m-1", at, one)
    prompt = replace(degrading(Cause.PROMPT, "v5", at - HOUR, one, other), others=[model])
    verdicts = VerdictCache(1, at, at, {(): prompt})
    attribution, verdict = verdicts.attribute({"provider": "acme", "model": "m-1"})
    assert (attribution.cause, verdict.since) == ("model", at)
    attribution, verdict = verdicts.attribute({"provider": "b", "model": "x"})
    assert (attribution.cause, attribution.value) == ("prompt", "v5")
    assert "incidents" not in verdict.as_json()


def test_of_two_causes_slices_are_put_down_to_the_one_that_touches_most_of_them() -> None:
    """A provider and a node fail at once: the series of the node are of other providers, too."""
    at = datetime(2026, 11, 21, 14, tzinfo=UTC)
    plan, step, other = (
        SeriesKey("prod", node, provider, "m")
        for node, provider in (("plan", "acme"), ("step", "acme"), ("plan", "b"))
    )
    node = degrading(Cause.VALIDATOR, "plan", at, plan, other)
    verdict = replace(degrading(Cause.PROVIDER_OUTAGE, "acme", at, plan, step), others=[node])
    verdicts = VerdictCache(1, at, at, {(): verdict})
    of_node, of_provider = (
        [one._asdict() for one in some] for some in ((plan, other), (plan, step))
    )
    assert verdicts.attribute(*of_node)[0].cause == "validator"
    assert verdicts.attribute(*of_provider)[0].cause == "provider_outage"


def test_a_slice_is_put_down_to_nothing_that_does_not_touch_it() -> None:
    at = datetime(2026, 11, 21, 14, tzinfo=UTC)
    touched = [SeriesKey("prod", "plan", "acme", model) for model in ("m-1", "m-2")]
    verdicts = VerdictCache(1, at, at, {(): degrading(Cause.MIXED, "", at, *touched)})
    assert verdicts.cause_of({"provider": "acme", "model": "m-2"}) is not None
    assert verdicts.cause_of({"provider": "acme", "model": "m-3"}) is None


def degrading(cause: Cause, value: str, since: datetime, *touched: SeriesKey) -> Verdict:
    """Return a verdict of one cause."""
    return Verdict(
        "degrading",
        Sentence("Degrading", since, ": x."),
        Finding(cause, value),
        who=touched[0] if len(touched) == 1 else SeriesKey(None, None, None, None),
        since=since,
        touched=frozenset(touched),
    )


def test_the_latest_incident_is_joined_first() -> None:
    later = opened(3, 60, "model", "acme/m-1")
    assert find_incident(MODEL, AT + timedelta(seconds=90), [KNOWN, later]) == later


def test_severities_have_an_order() -> None:
    assert rank("critical") > rank("warning")
    assert max(["info", "critical", "warning"], key=rank) == "critical"


def test_an_incident_is_named_by_its_slices() -> None:
    assert widest_of(["a", "a"]) == ["a"]
    assert widest_of(["a", "a, plan in prod", "ab"]) == ["a", "ab"]
    assert widest_of(["a, plan", "a, plan in prod", "a, plan, prod"]) == ["a, plan"]
