"""Prompt versions in order, each against the one before it."""

from collections import defaultdict

from diagnostics.console.prompts import PromptVersion, VersionKey, versions_of
from diagnostics.queries.call_counts import CallCounts
from diagnostics.web.charts.bars import lane

HAIKU, GPT = ("anthropic", "haiku"), ("openai", "gpt")


def in_order(*told: tuple[str, int, int, int]) -> list[PromptVersion]:
    """Give the versions of a source from their names, slots, calls and failed calls."""
    used = {name: [0, 0] for name, _, _, _ in told}
    for name, _, calls, failed in told:
        used[name][0] += calls
        used[name][1] += failed
    placed: dict[VersionKey, dict[int, int]] = defaultdict(dict)
    for name, slot, calls, _ in told:
        placed["bot", name][slot] = calls
    [versions] = versions_of(
        {("bot", name): {HAIKU: CallCounts(n, bad)} for name, (n, bad) in used.items()}, placed
    ).values()
    return versions


def test_versions_stand_in_the_order_in_which_they_began() -> None:
    versions = in_order(("v2", 3, 10, 0), ("v1", 0, 10, 0), ("v1", 3, 5, 0))
    assert [one.name for one in versions] == ["v1", "v2"]
    assert versions[0].before is None
    assert versions[1].before is versions[0]
    assert (versions[0].first_slot, versions[0].last_slot) == (0, 3)


def test_a_version_is_held_against_the_one_before() -> None:
    versions = in_order(("v1", 0, 400, 8), ("v2", 1, 400, 80))
    found = versions[1].against_before(HAIKU)
    assert found is not None
    assert (found.a.share, found.b.share) == (0.2, 0.02)
    assert found.level == 4
    assert versions[1].against_before(GPT) is None
    first = versions[0].against_before()
    assert first is not None
    assert first.b.share is None


def test_sources_have_versions_of_their_own() -> None:
    calls = {"bot": 10, "ops": 5}
    found = versions_of(
        {(source, "v1"): {HAIKU: CallCounts(n)} for source, n in calls.items()},
        {(source, "v1"): {0: n} for source, n in calls.items()},
    )
    assert {source: len(versions) for source, versions in found.items()} == {"bot": 1, "ops": 1}


def test_lanes_are_as_high_as_the_share_of_the_calls() -> None:
    drawn = lane({0: 50, 1: 5}, [100, 5], [0.5], "v2")
    assert drawn.bars.startswith("M0.0 26v-13h")
    assert "M480.0 26v-26h" in drawn.bars
    assert drawn.ticks == "M480 0v26"
    assert drawn.text == "v2: 52% of all calls, 100% of the latest"
