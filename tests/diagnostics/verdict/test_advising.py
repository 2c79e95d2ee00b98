"""What to change."""

from itertools import product

import pytest

from diagnostics.failures.wording import advice_kind
from diagnostics.store.fingerprints import ENDS
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.advice import COMPARE, Advice, advise
from diagnostics.verdict.cause import Cause, Finding
from diagnostics.verdict.evidence import Evidence, FailedCalls, FailureEvidence, gather_evidence
from failsoft.events import CallErrorType, EventKind, ParseErrorType
from tests.corpora import each_of

KINDS = sorted(
    {
        "",
        *FAILURE_KINDS,
        *(advice_kind(EventKind.PARSE_INVALID, one) for one in ParseErrorType),
        *(advice_kind(EventKind.PROVIDER_ERROR, one) for one in CallErrorType),
        *(advice_kind(EventKind.DEGRADED, one) for one in {*ENDS, "provider_failed"}),
    }
)
CAUSES = [None, *Cause]
SEEN = Evidence(sampled=40, now=FailedCalls(34, 100), before=FailedCalls(9, 3_000))


@each_of(product(KINDS, CAUSES, (True, False)))
def test_every_kind_and_cause_has_advice_with_figures(
    kind: str, cause: Cause | None, is_compared: bool
) -> None:
    advice = advise(Finding(cause, top_kind=kind, is_compared=is_compared), SEEN)
    own = advise(Finding(None, top_kind=kind), SEEN)
    assert len({one.text for one in advice}) == len(advice) in {1, 2}
    assert len(own) == 1
    for one in advice:
        assert one.text.endswith(".")
        assert one.evidence.endswith(".")
    assert "34.0\u202f% of 100 calls, 0.3\u202f% in the week before" in own[0].evidence
    assert "The kind is " not in own[0].evidence or "is unknown" in own[0].evidence


@each_of(product(KINDS, CAUSES))
def test_nothing_is_routed_or_told_apart_without_a_comparison(
    kind: str, cause: Cause | None
) -> None:
    advice = advise(Finding(cause, top_kind=kind, is_compared=False), SEEN)
    told = " ".join(one.text + one.evidence for one in advice)
    assert "Route" not in told
    assert "Only calls" not in told
    assert "Only answers" not in told
    assert "All models" not in told
    assert (COMPARE in advice) == (cause == Cause.MODEL)


def test_each_kind_of_event_has_advice_of_its_own() -> None:
    texts = {kind: advise(Finding(None, top_kind=kind), SEEN)[0] for kind in KINDS}
    same = {"call_other": "other", "other_invalid": "other"}
    own = {kind: told for kind, told in texts.items() if kind not in same}
    assert len({told.evidence for told in own.values()}) == len(own)


@pytest.mark.parametrize(
    ("kind", "cause", "texts"),
    [
        # Fewer calls help against a limit sooner than another provider does.
        ("call_rate_limited", Cause.PROVIDER_OUTAGE, ("Lower", "Route plans")),
        ("call_timeout", Cause.PROVIDER_OUTAGE, ("Route plans", "Check the provider")),
        # Answers came: it is no outage whatever was blamed.
        ("not_json", Cause.PROVIDER_OUTAGE, ("Request",)),
        ("truncated", Cause.MODEL, ("Raise the output", "Route plans to another model")),
        # It is not us: what we may change comes second, unless it is a limit.
        ("refusal", Cause.MODEL, ("Route plans to another model", "Read samples")),
        ("call_rate_limited", Cause.MODEL, ("Lower", "Route plans to another model")),
        ("not_json", Cause.PROMPT, ("Restore the previous version of this prompt if", "Request")),
        ("not_json", Cause.SCHEMA, ("Restore the previous version of this schema if", "Request")),
        # A change of ours makes calls time out: the provider's status says nothing of it.
        ("call_timeout", Cause.PROMPT, ("Restore", "Check whether this")),
        ("call_provider_error", Cause.SCHEMA, ("Restore", "Check what this")),
        ("refusal", Cause.RELEASE, ("Roll this release back if", "Read samples")),
        # Nothing can be rolled back where nothing is new.
        ("refusal", Cause.SOURCE, ("Check what changed in this source", "Read samples")),
        ("unknown_tool", Cause.VALIDATOR, ("Check what changed in the val", "Name the")),
        # Calls without an answer were never validated.
        ("call_timeout", Cause.VALIDATOR, ("Check the provider",)),
        ("schema_invalid", Cause.PAIR, ("Call one without", "Show a valid")),
        # The errors of the calls say which of the two is refused; nothing is new.
        ("call_provider_error", Cause.PAIR, ("Call one without", "Check the provider")),
        # The provider is well: the key is not.
        ("call_other", Cause.CREDENTIAL, ("Check this key",)),
        ("call_provider_error", Cause.CREDENTIAL, ("Check this key",)),
        ("call_rate_limited", Cause.CREDENTIAL, ("Check this key", "Lower")),
        ("call_timeout", Cause.ENVIRONMENT, ("Check what changed in this environment",)),
        ("schema_invalid", Cause.MIXED, ("Show a valid",)),
        ("", Cause.NOT_ENOUGH_DATA, ("Post an event",)),
    ],
)
def test_the_cause_and_the_kind_say_what_to_change(
    kind: str, cause: Cause, texts: tuple[str, ...]
) -> None:
    advice = advise(Finding(cause, top_kind=kind), Evidence())
    assert len(advice) == len(texts)
    for one, text in zip(advice, texts, strict=True):
        assert one.text.startswith(text)


def test_runs_whose_calls_nobody_posted_do_not_tell_the_kind() -> None:
    (untold,) = advise(Finding(None, top_kind="other_invalid"), Evidence())
    (told,) = advise(Finding(None, top_kind="other_invalid"), Evidence(sampled=3))
    assert untold.evidence == "The kind is unknown: only ends of runs or outcomes are posted."
    assert told.text.startswith("Read samples")


def test_calls_without_an_answer_are_advised_on_by_what_most_of_them_say() -> None:
    failures = [FailureEvidence(call_error="circuit_open")] * 2 + [FailureEvidence()]
    (advice,) = advise(Finding(None, top_kind="call_other"), gather_evidence(failures))
    assert advice.text.startswith("Check the breaker")


def truncated(output: int, budget: int | None, reasoning: int | None = None) -> Advice:
    failure = FailureEvidence(output, budget, reasoning_tokens=reasoning)
    (advice,) = advise(Finding(None, top_kind="truncated"), gather_evidence([failure] * 3))
    return advice


@pytest.mark.parametrize(
    ("output", "budget", "reasoning", "text", "evidence"),
    [
        (512, 512, None, "Raise the output", "end at 512 tokens (median); the budget is 512"),
        (512, None, None, "Raise the output", "end at 512 tokens (median): 3 failures"),
        # More of the same budget would be spent on more reasoning.
        (1024, 1024, 1000, "Lower the reasoning", "reasoning takes 1,000 of them"),
        (1024, 1024, 100, "Raise the output", "reasoning takes 100 of them"),
        # A larger budget does not help an answer that did not use up its own.
        (300, 4096, None, "Check stop sequences", "300 tokens (median); the budget is 4,096"),
    ],
)
def test_truncated_answers_say_what_used_up_the_budget(
    output: int, budget: int | None, reasoning: int | None, text: str, evidence: str
) -> None:
    advice = truncated(output, budget, reasoning)
    assert advice.text.startswith(text)
    assert evidence in advice.evidence


def fault(path: str, code: str = "missing") -> FailureEvidence:
    return FailureEvidence(errors=[{"path": path, "code": code}])


def test_the_pointer_that_rose_is_named_and_not_the_most_seen() -> None:
    failures = [fault("/steps/0/tool", "enum")] * 60 + [fault("/due_date")] * 40
    earlier = FailedCalls(700, 1_000), {("/steps/*/tool", "enum"): 650}
    found = gather_evidence(failures, FailedCalls(100, 150), *earlier)
    assert [one.name for one in found.pointers] == ["/due_date"]
    (advice,) = advise(Finding(None, top_kind="schema_invalid"), found)
    assert advice.text.startswith("Show /due_date in the prompt's example")
    assert "/due_date (missing, 40 sampled, 0 in the week before)" in advice.evidence


def test_the_tool_that_rose_is_named_with_the_nearest() -> None:
    asked = [FailureEvidence(tool="mail", attributes={"nearest": "mail.send"})] * 2
    usual = [FailureEvidence(tool="orders.fetch")] * 8
    earlier = FailedCalls(80, 1_000), {("", "orders.fetch"): 80}
    found = gather_evidence([*usual, *asked], FailedCalls(10, 100), *earlier)
    (advice,) = advise(Finding(None, top_kind="unknown_tool"), found)
    assert "most of all mail (nearest: mail.send): 10.0" in advice.evidence


def test_a_cause_tells_its_part_of_the_failures_above_baseline() -> None:
    route, _ = advise(Finding(Cause.MODEL, top_kind="refusal", part=(0.41, 0.03)), SEEN)
    assert route.evidence == (
        "Calls to this model: 41\u202f% of the failures above baseline, 3\u202f% of all calls."
    )


@each_of(product(KINDS, CAUSES, (True, False), (True, False)))
def test_advice_presumes_no_earlier_version(
    kind: str, cause: Cause | None, is_compared: bool, is_new: bool
) -> None:
    """The first version of a prompt, schema or release may fail, too."""
    found = Finding(cause, top_kind=kind, is_compared=is_compared, is_new=is_new)
    for one in advise(found, SEEN):
        if any(word in one.text.lower() for word in ("former", "previous", "restore", "roll")):
            assert " if" in one.text


def test_a_new_version_in_a_pair_is_restored() -> None:
    first, _ = advise(Finding(Cause.PAIR, top_kind="not_json", is_new=True, part=(0.9, 0.1)), SEEN)
    assert first.text.startswith("Restore the previous version, if any, where both are called")
    assert first.evidence.startswith("Calls with both: 90")


def test_an_error_that_the_events_name_is_named() -> None:
    failures = [FailureEvidence(call_error="authentication_error")] * 3
    (advice,) = advise(Finding(None, top_kind="call_other"), gather_evidence(failures))
    assert advice.evidence.startswith(
        "Calls end without an answer, most often with authentication_error: 3 failures"
    )
    assert "post" not in advice.text.lower()
