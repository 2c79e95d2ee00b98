"""What a look at a slice found, in words."""

import pytest

from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.wording import evaluation_words, name_slices, slice_words
from diagnostics.verdict.verdicts import StoredVerdict
from diagnostics.verdict.wording import NO_CAUSE, Sentence


@pytest.mark.parametrize(
    ("signal", "k", "n", "value", "bound", "said"),
    [
        # A rule with a threshold: the rate, not its lower bound, and the limit.
        ("degraded_ratio", 40, 60, 0.517, 0.1,
         "40 of 60 runs, 67\u202f%; lower bound 51.7\u202f%; limit 10.0\u202f%"),
        ("degraded_ratio", 7, 40, 0.175, 0.05, "7 of 40 runs, 18\u202f%; limit 5.0\u202f%"),
        # A limit of latency: a share of slow calls, not of failed ones.
        ("latency_p95", 9, 24, 9.0, 0.05, "9 of 24 calls slower; limit 5.0\u202f%"),
        # What is no part of calls or runs: money in millionths, tokens, seconds without an event.
        ("retry_money", 7_500_000, 7_500_000, 7.5e6, 5e6, "$7.50; limit $5.00"),
        ("retry_tokens", 184_220, 500, 184_220.0, 1e5, "184,220; limit 100,000"),
        ("new_group", 3, 3, 3.0, 1.0, "3; limit 1"),
        ("source_silent", 7200, 0, 7200.0, 3600.0, "2\u202fh; limit 1\u202fh"),
        # The change detector: evidence is no share.
        ("degraded_ratio", 29, 52, 7.95, 7.84,
         "29 of 52 runs, 56\u202f%; evidence 8.0, alarm at 7.8"),
        ("degraded_ratio", 1, 50, 0.02, 0.0, "1 of 50 runs, 2.0\u202f%"),
        ("degraded_count", 3, 0, 3.0, 3.0, "3; limit 3"),
    ],
)  # fmt: skip
def test_a_look_is_told(signal: str, k: int, n: int, value: float, bound: float, said: str) -> None:
    assert evaluation_words(signal, k, n, value, bound) == said


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "all calls"),
        ({"provider": None, "model": None}, "unknown/unknown"),
        ({"provider": "acme", "model": None}, "acme/unknown"),
        ({"environment": None}, "unknown environment"),
        ({"environment": None, "provider": "acme", "model": "m-1"}, "acme/m-1"),
        ({"source": "planner"}, "source planner"),
        (
            {"environment": "prod", "node": "next_step", "provider": "acme", "model": "m-1"},
            "acme/m-1, next step in prod",
        ),
    ],
)
def test_a_slice_without_a_value_is_not_all_calls(
    values: dict[str, str | None], words: str
) -> None:
    assert slice_words(values) == words


def test_the_nodes_of_one_model_are_named_together() -> None:
    def one(node: str | None, model: str = "m-1") -> dict[str, str | None]:
        return {"environment": "prod", "node": node, "provider": "acme", "model": model}

    assert name_slices([one("plan"), one("next_step"), one("plan"), one("plan", "m-2")]) == [
        "acme/m-1, plan and next step in prod",
        "acme/m-2, plan in prod",
    ]
    assert name_slices(map(one, "abcd")) == ["acme/m-1, a, b and 2 more in prod"]
    assert name_slices([{"provider": "acme", "model": "m-1"}]) == ["acme/m-1"]
    assert name_slices([one("plan"), {**one("plan"), "environment": "staging"}]) == [
        "acme/m-1, plan in prod",
        "acme/m-1, plan in staging",
    ]


def test_an_incident_has_the_cause_of_the_latest_verdict_that_names_one() -> None:
    def told(cause: str, why: str) -> dict[str, object]:
        sentence = Sentence("Degrading", None, ": acme/m-1.", (why,))
        return StoredVerdict(cause=cause, told=sentence).as_json()

    fired, unclear = told("model", "Looks like the model."), told("mixed", "Either.")
    unsure = told("not_enough_data", NO_CAUSE)
    assert Incident(verdict=fired, verdict_now=unclear).cause_words() == "Either."
    assert Incident(verdict=fired, verdict_now=unsure).cause_words() == "Looks like the model."
    assert Incident(verdict={}, verdict_now={}).cause_words() == ""
