"""What each sentence claims of the counts is so."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from diagnostics.verdict.advice import advise
from diagnostics.verdict.cause import Cause, Finding, name_cause
from diagnostics.verdict.cells import CountCell, Dimensions
from diagnostics.verdict.evidence import Evidence
from diagnostics.verdict.findings import find_causes
from diagnostics.verdict.hypotheses import FirstSeen, Timing
from diagnostics.verdict.wording import cause_words

MODELS = (("acme", "one"), ("acme", "two"), ("zeta", "three"), ("zeta", "four"))
SOURCES = ("bot", "crm", "web")
NODES = ("plan", "step")
Hit = Callable[[Dimensions], bool]


def places(
    models: tuple[tuple[str, str], ...] = MODELS, sources: tuple[str, ...] = SOURCES
) -> list[Dimensions]:
    return [
        Dimensions(
            provider,
            model,
            f"{source}-v1",
            "Plan",
            "1",
            source,
            "r1",
            node,
            environment,
            None,
            region,
            f"key-{source}-{provider}",
        )
        for (provider, model), source, node, (environment, region) in product(
            models, sources, NODES, (("prod", "eu"), ("prod", "us"), ("stage", "eu"))
        )
    ]


def cells_of(called: list[Dimensions], hit: Hit, kind: str) -> list[CountCell]:
    """Sixty calls of each place; a third of those that are hit fail."""
    return [CountCell(place, 60, {kind: 20} if hit(place) else {}) for place in called]


def quiet(called: list[Dimensions]) -> list[CountCell]:
    return [CountCell(place, 1_000, {"schema_invalid": 10}) for place in called]


@dataclass(frozen=True)
class Story:
    """What is hit, how it fails, and what must be said."""

    hit: Hit
    kind: str
    cause: Cause
    value: str
    words: str


def renewed(place: Dimensions, **changed: str) -> Dimensions:
    return place._replace(**changed) if place.source == "crm" else place


STORIES = [
    Story(
        lambda place: place.model == "one",
        "not_json", Cause.MODEL, "acme/one",
        "Looks like the model or provider, not us: 3 prompt versions affected.",
    ),
    Story(
        lambda place: place.provider == "acme",
        "call_timeout", Cause.PROVIDER_OUTAGE, "acme",
        "Looks like an outage of the provider, not us.",
    ),
    Story(
        lambda place: place.provider == "acme",
        "call_rate_limited", Cause.PROVIDER_OUTAGE, "acme",
        "Looks like a limit of the provider: it refuses our calls (429).",
    ),
    Story(
        lambda place: place.source == "crm",
        "truncated", Cause.SOURCE, "crm",
        "Looks like us: calls of crm fail more, at 4 models; no new version began with it.",
    ),
    Story(
        lambda place: place.environment == "stage",
        "call_other", Cause.ENVIRONMENT, "stage",
        "Looks like our environment stage or its network: its calls fail more, at 4 models.",
    ),
    Story(
        lambda place: place.region == "us",
        "call_timeout", Cause.REGION, "us",
        "Looks like the region us: its calls fail more, at 4 models.",
    ),
    Story(
        lambda place: place.credential == "key-crm-acme",
        "call_other", Cause.CREDENTIAL, "key-crm-acme",
        "Looks like the credential key-crm-acme: its calls fail more, at 2 models.",
    ),
    Story(
        lambda place: place.node == "step",
        "schema_invalid", Cause.VALIDATOR, "step",
        "Looks like our validator or its tools at the node step: 4 of 4 models fail more.",
    ),
    Story(
        lambda _: True,
        "schema_invalid", Cause.VALIDATOR, "",
        "Looks like our validator or its tools: 4 of 4 models fail more.",
    ),
    Story(
        lambda _: True,
        "call_timeout", Cause.ENVIRONMENT, "",
        "Looks like our environment or its network: more calls to 4 of 4 models end without an"
        " answer.",
    ),
    Story(
        lambda place: place.source == "crm" and place.model == "one",
        "truncated", Cause.PAIR, "crm with acme/one",
        "Only together they fail more: crm with acme/one.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    "story", STORIES, ids=lambda story: f"{story.cause}-{story.value}-{story.kind}"
)
def test_a_sentence_says_what_is_hit_and_how_much_of_it(story: Story) -> None:
    called = places()
    (finding,) = find_causes(cells_of(called, story.hit, story.kind), quiet(called))
    assert (finding.cause, finding.value) == (story.cause, story.value)
    assert cause_words(finding) == story.words
    assert [place for place in called if finding.touches(place)] == list(filter(story.hit, called))
    assert finding.top_kind == story.kind


CHANGES = [
    (
        {"prompt_version": "crm-v2"},
        Cause.PROMPT,
        "crm-v2",
        "Looks like our prompt crm-v2: its calls fail more, at 4 mod",
    ),
    (
        {"release": "r2"},
        Cause.RELEASE,
        "crm r2",
        "Looks like our release crm r2: its calls fail more, at 4 mod",
    ),
    (
        {"schema_version": "2"},
        Cause.SCHEMA,
        "Plan 2",
        "Looks like our schema Plan 2: its calls fail more, at 4 mod",
    ),
]


@pytest.mark.parametrize(("changed", "cause", "value", "words"), CHANGES)
def test_a_new_version_is_named_with_the_models_that_it_hits(
    changed: dict[str, str], cause: Cause, value: str, words: str
) -> None:
    called = [renewed(place, **changed) for place in places()]
    cells = cells_of(called, lambda place: place.source == "crm", "not_json")
    (finding,) = find_causes(cells, quiet(places()))
    assert (finding.cause, finding.value, finding.is_new) == (cause, value, True)
    assert cause_words(finding).startswith(words)


def test_what_answers_is_named_by_model_or_by_upstream() -> None:
    def answered(place: Dimensions, name: str) -> Dimensions:
        return place._replace(served=name) if place.model == "one" else place

    def told(name: str) -> Finding:
        called = [answered(place, name) for place in places()]
        before = quiet([answered(place, "one at east") for place in places()])
        cells = cells_of(called, lambda place: place.served == name, "not_json")
        return find_causes(cells, before)[0]

    fallback, moved = told("mini at gateway"), told("one at west")
    assert cause_words(fallback) == (
        "Looks like what answers, not the model that was asked for: calls answered by"
        " mini at gateway fail more."
    )
    assert cause_words(moved) == (
        "Looks like the upstream west: calls that it answers fail more, at 1 model."
    )


def test_a_bad_host_of_one_model_is_the_upstream() -> None:
    called = [
        place._replace(served=f"{place.model} at {host}")
        for place in places()
        for host in ("east", "west")
    ]
    cells = cells_of(called, lambda place: place.served == "one at west", "not_json")
    (finding,) = find_causes(cells, quiet(called))
    assert (finding.cause, finding.value) == (Cause.UPSTREAM, "west")
    assert name_cause(finding) == "upstream west for acme/one"
    assert [place for place in called if finding.touches(place)] == [
        place for place in called if place.served == "one at west"
    ]


def test_one_model_is_never_cleared_of_nor_blamed_for_what_may_be_ours() -> None:
    called = places((("acme", "one"),), ("bot",))[:1]
    (finding,) = find_causes(cells_of(called, lambda _: True, "not_json"), quiet(called))
    assert finding.cause is Cause.MIXED
    assert "not us" not in cause_words(finding)
    assert not finding.is_compared


def test_not_us_is_earned_by_calls_of_the_same_versions_elsewhere() -> None:
    """Another model is well, but no call of the versions that the bad one has."""
    called = [place._replace(prompt_version=f"{place.source}-{place.model}") for place in places()]
    cells = cells_of(called, lambda place: place.model == "one", "not_json")
    (finding,) = find_causes(cells, quiet(called))
    assert finding.cause is Cause.MODEL
    assert cause_words(finding).startswith("Looks like the model or provider: ")


def test_what_always_came_together_is_told_as_either() -> None:
    called = [place for place in places() if (place.source == "crm") == (place.model == "one")]
    cells = cells_of(called, lambda place: place.model == "one", "truncated")
    (finding,) = find_causes(cells, quiet(called))
    assert finding.cause is Cause.MIXED
    assert finding.came_together
    assert cause_words(finding) == (
        "Looks like the model acme/one or the source crm, which have the same calls."
        " Calls of one without the other would tell."
    )


@pytest.mark.parametrize("calls", [2, 3])
def test_a_new_version_is_the_cause_whether_one_model_fails_or_all(calls: int) -> None:
    """Too few calls of another model to tell whether the new release fails there, too."""
    called = [renewed(place, release="r2") for place in places(MODELS[:2])]
    own = [place for place in called if place.source == "crm"]
    cells = [CountCell(place, 60, {}) for place in called if place.source != "crm"]
    cells += [CountCell(place, 20, {"truncated": 6}) for place in own if place.model == "one"]
    cells += [CountCell(place, calls, {}) for place in own if place.model == "two"]
    (finding,) = find_causes(cells, quiet(places()))
    assert cause_words(finding) == (
        "Looks like our release crm r2: its calls fail more, at 1 of 2 models."
    )


def test_versions_that_were_there_before_are_no_alternatives() -> None:
    """A release and a schema that have the same calls, both called before the onset."""
    called = [
        place._replace(release=version, schema_version=version)
        for place in places((("acme", "one"),), ("crm",))
        for version in ("1", "2")
    ]
    cells = cells_of(called, lambda place: place.release == "1", "not_json")
    (finding,) = find_causes(cells, quiet(called))
    assert cause_words(finding) == "The calls so far do not tell the cause."


def test_how_many_of_the_models_of_a_cause_are_hit_is_said_in_one_number() -> None:
    """A new prompt fails at three of its four models."""
    called = [renewed(place, prompt_version="crm-v2") for place in places()]
    cells = cells_of(
        called, lambda place: place.source == "crm" and place.model != "four", "not_json"
    )
    words = {cause_words(finding) for finding in find_causes(cells, quiet(places()))}
    assert words in (
        {"Looks like our prompt crm-v2: its calls fail more, at 3 of 4 models."},
        {"The calls so far do not tell the cause."},
    )


def test_a_cause_that_cannot_be_told_is_not_said_to_be_everything() -> None:
    unclear = Finding(Cause.MIXED)
    assert cause_words(unclear) == "The calls so far do not tell the cause."
    either = Finding(
        Cause.MIXED, alternatives=((Cause.VALIDATOR, ""), (Cause.VALIDATOR, "next_step"))
    )
    assert cause_words(either).startswith(
        "Looks like our validator or our validator at the node next_step; so far"
    )


def test_the_only_provider_is_not_cleared_by_itself() -> None:
    called = places((("acme", "one"), ("acme", "two")))
    (finding,) = find_causes(cells_of(called, lambda _: True, "call_timeout"), quiet(called))
    assert (finding.cause, finding.value) == (Cause.PROVIDER_OUTAGE, "acme")
    assert cause_words(finding) == (
        "Calls to acme end without an answer; there are too few good calls to another provider to"
        " compare with: it may be the provider, or our network."
    )


def test_a_cause_has_the_share_of_the_failures_that_its_calls_have() -> None:
    """A region and a key fail at once: neither is said to be the only one."""
    called = places()

    def kind_of(place: Dimensions) -> str | None:
        if place.credential == "key-crm-acme":
            return "call_other"
        return "call_timeout" if place.region == "us" else None

    cells = [
        CountCell(place, 60, {kind: 40} if (kind := kind_of(place)) else {}) for place in called
    ]
    findings = find_causes(cells, quiet(called))
    assert {finding.value for finding in findings} == {"us", "key-crm-acme"}
    for finding in findings:
        own = [cell for cell in cells if finding.touches(cell.place)]
        assert finding.part is not None
        excess, calls = finding.part
        assert calls == pytest.approx(len(own) / len(cells))
        failed = sum(cell.failed for cell in own) / sum(cell.failed for cell in cells)
        assert excess == pytest.approx(failed, abs=0.03)
        evidence = " ".join(
            advice.evidence
            for advice in advise(
                Finding(finding.cause, top_kind="call_other", part=finding.part), Evidence()
            )
        )
        assert f"{excess * 100:.0f}\u202f% of the failures above baseline" in evidence
        assert "only" not in evidence.lower()


@pytest.mark.parametrize("hours", [2, 40])
def test_no_new_version_is_said_to_have_begun_unless_one_did(hours: int) -> None:
    """All calls of a source fail, and a canary of it began at the onset, or long before."""
    called = [
        place._replace(release=release) if place.source == "crm" else place
        for place in places()
        for release in (("r1", "r2") if place.source == "crm" else ("r1",))
    ]
    cells = cells_of(called, lambda place: place.source == "crm", "truncated")
    onset = datetime(2026, 11, 21, 12, tzinfo=UTC)
    at = onset + timedelta(hours=2 - hours)
    begun = [FirstSeen(place.versions, at) for place in called if place.release == "r2"]
    around = timedelta(minutes=20)
    timing = Timing(onset - around, onset + around, [one for one in begun if at == onset])
    before = quiet([place for place in called if place.release == "r1" or hours > 2])
    (finding,) = find_causes(cells, before, timing)
    assert finding.cause is Cause.SOURCE
    assert ("no new version began" in cause_words(finding)) is (hours > 2)


def test_refused_calls_to_one_model_are_a_limit_and_not_said_to_be_not_us() -> None:
    called = places()
    cells = cells_of(called, lambda place: place.model == "one", "call_rate_limited")
    (finding,) = find_causes(cells, quiet(called))
    assert finding.cause is Cause.MODEL
    assert cause_words(finding) == (
        "Looks like a limit of the provider for this model: it refuses our calls (429)."
    )


@pytest.mark.parametrize(
    ("finding", "name"),
    [
        (Finding(Cause.MODEL, "acme/one", place=" in prod"), "acme/one in prod"),
        (Finding(Cause.PROVIDER_OUTAGE, "acme"), "acme"),
        (Finding(Cause.PROMPT, "crm-v2"), "prompt crm-v2"),
        (Finding(Cause.SOURCE, "crm"), "source crm"),
        (Finding(Cause.PAIR, "crm with acme/one"), "pair crm with acme/one"),
        (Finding(Cause.SERVED, "mini at azure"), "answering model mini at azure"),
        (Finding(Cause.VALIDATOR, "next_step"), "node next_step"),
        (Finding(Cause.ENVIRONMENT, "stage"), "environment stage"),
    ],
)
def test_what_the_rate_counts_is_named(finding: Finding, name: str) -> None:
    assert name_cause(finding) == name


def test_shares_of_the_excess_are_shares() -> None:
    called = places()
    cells = cells_of(called, lambda place: place.model == "one", "not_json")
    (finding,) = find_causes(cells, quiet(called))
    assert max(share.share for share in finding.shares) <= 1.0


def test_our_network_is_an_alternative_by_its_name() -> None:
    either = ((Cause.PROVIDER_OUTAGE, "acme"), (Cause.ENVIRONMENT, ""))
    assert cause_words(Finding(Cause.MIXED, alternatives=either)) == (
        "Looks like the provider acme or our network; so far the calls fit both."
        " Calls without the provider acme would tell."
    )
