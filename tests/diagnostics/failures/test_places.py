"""Where failures happen, against where calls happen."""

import pytest

from diagnostics.failures.places import FailurePlace, divide, summarise


def where(model: str, prompt: str | None = "p1", provider: str | None = "a") -> FailurePlace:
    return FailurePlace(provider, model, "prod", prompt, None, "bot", "r1")


def test_a_place_has_its_share_of_failures_and_of_calls_and_the_lift() -> None:
    failures = {where("haiku"): 90, where("gpt", "p2"): 10}
    calls = {where("haiku"): 250, where("gpt", "p2"): 500, where("gpt"): 250}
    found = {one.name: one for one in divide(failures, calls)}
    haiku, gpt = found["model"].rows
    assert (haiku.name, haiku.share, haiku.traffic) == ("a/haiku", 0.9, 0.25)
    assert haiku.lift == pytest.approx(3.6)
    assert haiku.is_striking
    assert haiku.rate == pytest.approx(0.36)
    assert (gpt.share, gpt.traffic, gpt.is_striking) == (0.1, 0.75, False)


def test_the_most_telling_dimension_comes_first() -> None:
    failures = {where("haiku", "p1"): 50, where("haiku", "p2"): 50}
    calls = {
        **{where("haiku", prompt): 100 for prompt in ("p1", "p2")},
        **{where("gpt", prompt): 400 for prompt in ("p1", "p2")},
    }
    found = divide(failures, calls)
    assert found[0].name == "model"
    assert summarise(found).startswith("a/haiku has 100")


def test_a_value_that_is_not_set_is_said_with_its_field() -> None:
    failures = {where("haiku", None): 60}
    calls = {where("haiku", None): 100, where("haiku"): 900}
    assert summarise(divide(failures, calls)).startswith("prompt version not set has 100")


def test_no_share_of_calls_is_told_by_what_posted_runs_do_not_say() -> None:
    found = divide({where("haiku", "p7"): 60}, {where("haiku", None): 4_900})
    prompt = next(one for one in found if one.name == "prompt version")
    assert [(row.name, row.traffic) for row in prompt.rows] == [("p7", None)]


def test_nothing_is_said_of_failures_that_are_spread_as_calls_are() -> None:
    spread = {where("haiku"): 30, where("gpt"): 30}
    calls = {where("haiku"): 300, where("gpt"): 310}
    assert summarise(divide(spread, calls)) == ""


def test_few_failures_strike_nobody() -> None:
    found = divide({where("haiku"): 4}, {where("haiku"): 10, where("gpt"): 990})
    assert not found[0].rows[0].is_striking


def test_places_without_a_failure_stand_last_and_the_rest_is_counted() -> None:
    failures = {where("bad"): 9}
    calls = {where("bad"): 10, **{where(f"good-{k}"): 100 - k for k in range(7)}}
    model = next(one for one in divide(failures, calls) if one.name == "model")
    assert [row.values["model"] for row in model.rows][:2] == ["bad", "good-0"]
    assert (len(model.rows), model.left_out) == (5, 3)


def test_without_counted_calls_there_is_a_share_and_no_lift() -> None:
    row = divide({where("haiku", provider=None): 5}, {})[0].rows[0]
    assert (row.share, row.traffic, row.lift, row.rate) == (1.0, None, None, None)
    assert "unknown" in next(
        one.rows[0].name
        for one in divide({where("haiku", provider=None): 5}, {})
        if one.name == "model"
    )
