"""What to change about one kind of failure."""

import pytest

from diagnostics.failures.places import FailurePlace, advise_group, divide
from diagnostics.failures.wording import advice_kind, title_of
from diagnostics.verdict.evidence import FailureEvidence, gather_evidence

NO_PLACES = divide({}, {})


def test_answers_that_were_cut_off_tell_where_and_the_budget() -> None:
    failures = [FailureEvidence(output_tokens=512, max_output_tokens=512) for _ in range(3)]
    (advice,) = advise_group("parse_invalid", "truncated", failures, NO_PLACES)
    assert "512 tokens (median); the budget is 512" in advice.evidence


def test_unknown_tools_are_named_beside_the_nearest() -> None:
    failures = [FailureEvidence(tool="orders.fetch", attributes={"nearest": "orders.get"})]
    (advice,) = advise_group("unknown_tool", "unknown_tool", failures, NO_PLACES)
    assert "orders.fetch (nearest: orders.get)" in advice.evidence


def test_places_of_schema_errors_are_counted() -> None:
    error = {"path": "/steps/0/tool", "code": "missing"}
    found = gather_evidence(
        [FailureEvidence(errors=[error]), FailureEvidence(errors=[error, {}]), FailureEvidence()]
    )
    (place,) = found.pointers
    assert (place.name, place.detail, place.sampled) == ("/steps/*/tool", "missing", 2)


@pytest.mark.parametrize("end", ["circuit_open", "budget_exhausted", "timeout", "provider_failed"])
def test_ends_of_runs_have_advice_of_their_own(end: str) -> None:
    (advice,) = advise_group("degraded", end, [], NO_PLACES)
    assert advice.evidence.startswith("Runs ")


@pytest.mark.parametrize(
    ("error_type", "word"),
    [("rate_limited", "429"), ("timeout", "time out"), ("provider_error", "error of the provider")],
)
def test_calls_without_an_answer_are_advised_on(error_type: str, word: str) -> None:
    (advice,) = advise_group("provider_error", error_type, [], NO_PLACES)
    assert word in advice.evidence
    assert advice_kind("provider_error", error_type).startswith("call_")


def where(model: str) -> FailurePlace:
    return FailurePlace("a", model, None, None, None, None, None)


def test_a_model_that_clearly_fails_less_is_named_with_its_interval() -> None:
    places = divide(
        {where("haiku"): 90, where("gpt"): 2},
        {where("haiku"): 300, where("gpt"): 400, where("tiny"): 10},
    )
    *_, advice = advise_group("parse_invalid", "refusal", [], places)
    assert advice.text == "Send these calls to a/gpt for now."
    assert "400 calls" in advice.evidence


def test_no_model_is_named_when_it_may_be_chance() -> None:
    places = divide({where("haiku"): 6, where("gpt"): 4}, {where("haiku"): 100, where("gpt"): 100})
    assert len(advise_group("parse_invalid", "refusal", [], places)) == 1


def test_kinds_are_told_in_words() -> None:
    assert title_of("parse_invalid", "truncated", "", "") == "Truncated"
    told = title_of("parse_invalid", "schema_invalid", "/steps/*/tool", "missing")
    assert told == "Schema: missing field /steps/*/tool"
    assert title_of("unknown_tool", "unknown_tool", "", "orders.get") == "Unknown tool: orders.get"
    assert title_of("parse_invalid", "new_kind", "", "") == "new kind"
    assert (
        title_of("parse_invalid", "not_json", "/a", "", "next_step") == "Not JSON at /a · next_step"
    )
    assert title_of("parse_invalid", "duplicate_key", "/a", "duplicate_key") == "Duplicate key /a"


def test_a_timeout_is_one_word_of_a_run_and_of_a_call() -> None:
    assert title_of("provider_error", "timeout", "", "") == "Timeout: call"
    assert title_of("degraded", "timeout", "", "") == "Timeout: run"
