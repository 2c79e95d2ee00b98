"""The resolver over every kind of thing a check leaves behind (s3, X-13)."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.completion import (
    CheckDecision,
    CheckVerdict,
    DecisionSource,
    UndecidedCause,
    resolve_completion_decision,
)
from failsoft.completion.resolver import parse_completion_decision_from_file
from tests.failsoft.completion.cases import CASES, CHECK_ID, GROUPS, Case

GOOD = '{"decision":"complete","check_id":"c1"}'
STALE = '{"decision":"complete","check_id":"c0"}'


def of(group: str) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in GROUPS[group]]


def decide(file: str | None, output: str = "", **more: bool) -> CheckVerdict:
    return resolve_completion_decision(file, output, CHECK_ID, **more)


def agrees(case: Case) -> None:
    verdict = decide(case.file, case.output)
    assert (
        verdict.decision.value,
        verdict.source.value,
        verdict.check_id_match,
        verdict.cause and verdict.cause.value,
    ) == (case.decision, case.source, case.check_id_match, case.cause)


@pytest.mark.parametrize("case", of("file-json"))
def test_s3_9_s3_12_a_decision_file_is_read_as_json(case: Case) -> None:
    agrees(case)


@pytest.mark.parametrize("case", of("file-text"))
def test_s3_9_s3_16_a_decision_file_is_read_as_legacy_text(case: Case) -> None:
    agrees(case)


@pytest.mark.parametrize("case", of("stdout-json"))
def test_x_13_json_in_the_output_counts_as_whole_lines_only(case: Case) -> None:
    agrees(case)


@pytest.mark.parametrize("case", of("marker"))
def test_s3_20_markers_are_the_fallback_and_doubt_is_never_complete(case: Case) -> None:
    agrees(case)


@pytest.mark.parametrize("case", of("priority"))
def test_s3_18_s3_19_s3_20_s3_52_the_priority_of_sources_is_fixed(case: Case) -> None:
    agrees(case)


def test_s3_2_a_line_that_says_incomplete_is_never_complete() -> None:
    for text in ("INCOMPLETE", "so far\nINCOMPLETE\n", "**INCOMPLETE**", "> INCOMPLETE"):
        assert decide(None, text).decision is CheckDecision.INCOMPLETE


def test_s3_3_a_verdict_file_that_says_fail_is_used() -> None:
    verdict = decide("FAIL", "COMPLETE")

    assert (verdict.decision, verdict.source) == (
        CheckDecision.INCOMPLETE,
        DecisionSource.FILE_TEXT,
    )


@pytest.mark.parametrize("word", ["PASS", "Pass", "pass", "COMPLETE", "complete"])
def test_s3_11_s3_48_s3_53_good_words_in_any_case(word: str) -> None:
    for file, output in ((word, ""), (None, word)):
        assert decide(file, output).decision is CheckDecision.COMPLETE
    structured = json.dumps({"decision": word, "check_id": "c1"})
    assert decide(structured).decision is CheckDecision.COMPLETE


@pytest.mark.parametrize("word", ["FAIL", "Fail", "fail", "INCOMPLETE", "incomplete"])
def test_s3_11_s3_8_bad_words_in_any_case(word: str) -> None:
    for file, output in ((word, "COMPLETE"), (None, word)):
        assert decide(file, output).decision is CheckDecision.INCOMPLETE


def test_s3_6_the_same_input_always_decides_the_same() -> None:
    for case in CASES:
        verdicts = {repr(decide(case.file, case.output)) for _ in range(100)}
        assert len(verdicts) == 1, case.name


def test_s3_15_reasons_and_fingerprints_are_kept_and_bounded() -> None:
    document = {
        "decision": "incomplete",
        "check_id": "c1",
        "reasons": ["no tests", {"file": "a.py"}, *["x" * 2_000] * 100],
        "fingerprints": ["missing-tests", 7],
    }
    verdict = decide(json.dumps(document))

    assert verdict.reasons[:2] == ("no tests", '{"file": "a.py"}')
    assert len(verdict.reasons) == 20
    assert max(map(len, verdict.reasons)) == 500
    assert verdict.fingerprints == ("missing-tests", "7")


def test_a_single_reason_is_a_list_of_one() -> None:
    verdict = decide('{"decision":"fail","check_id":"c1","reasons":"no tests"}')

    assert verdict.reasons == ("no tests",)


def test_what_a_stale_document_says_is_not_kept() -> None:
    verdict = decide('{"decision":"fail","check_id":"c0","reasons":["old"]}')

    assert (verdict.reasons, verdict.fingerprints) == ((), ())


def test_s3_10_a_wrong_id_is_refused_with_expected_and_got() -> None:
    verdict = decide(STALE)

    assert verdict.reason == 'check_id_mismatch: expected "c1", got "c0"'


def test_a_long_foreign_id_is_cut() -> None:
    verdict = decide(json.dumps({"decision": "pass", "check_id": "x" * 10_000}))

    assert len(verdict.reason or "") < 250


def test_x_13_nothing_is_complete_where_no_id_is_expected_but_by_text() -> None:
    verdict = resolve_completion_decision(GOOD, "", None)

    assert (verdict.decision, verdict.cause) == (
        CheckDecision.UNDECIDABLE,
        UndecidedCause.NO_EXPECTED_ID,
    )
    assert resolve_completion_decision("PASS", "", "").decision is CheckDecision.COMPLETE


def test_an_output_that_was_cut_never_says_complete() -> None:
    assert decide(None, "COMPLETE", output_is_cut=True).cause is UndecidedCause.OUTPUT_CUT
    assert decide(None, GOOD, output_is_cut=True).cause is UndecidedCause.OUTPUT_CUT
    verdict = decide(None, "INCOMPLETE", output_is_cut=True)
    assert verdict.decision is CheckDecision.INCOMPLETE
    assert decide(GOOD, "", output_is_cut=True).decision is CheckDecision.COMPLETE


def test_s3_29_every_cause_has_a_code_of_its_own() -> None:
    causes = {case.cause for case in CASES if case.cause}

    assert {"missing_decision", "invalid_json", "missing_check_id", "truncated"} <= causes
    assert causes <= {cause.value for cause in UndecidedCause}


def test_s3_32_s3_21_the_file_alone_is_read_by_the_same_rules() -> None:
    for case in [*GROUPS["file-json"], *GROUPS["file-text"]]:
        assert case.file is not None
        assert parse_completion_decision_from_file(case.file, "c1") == decide(case.file)


def test_s3_36_structured_files_decide_both_ways() -> None:
    assert decide(GOOD).decision is CheckDecision.COMPLETE
    assert decide(GOOD.replace("complete", "fail")).decision is CheckDecision.INCOMPLETE


def test_s3_37_legacy_files_decide_both_ways() -> None:
    assert decide("PASS").decision is CheckDecision.COMPLETE
    assert decide("FAIL").decision is CheckDecision.INCOMPLETE


def test_s3_38_a_marker_decides_where_there_is_no_file() -> None:
    assert decide(None, "COMPLETE").source is DecisionSource.MARKER


def test_s3_39_a_stale_file_is_refused() -> None:
    verdict = decide(STALE)

    assert (verdict.decision, verdict.check_id_match) == (CheckDecision.INCOMPLETE, False)


def test_s3_40_invalid_json_is_undecidable_and_ends_the_search() -> None:
    verdict = decide('{"decision": complete now, "check_id"', "COMPLETE")

    assert (verdict.decision, verdict.source) == (
        CheckDecision.UNDECIDABLE,
        DecisionSource.FILE_JSON,
    )


def test_s3_54_the_input_that_failed_before_is_decided_now() -> None:
    output = "Review finished. Decision marker follows:\n\n  INCOMPLETE  \n\nSee notes."

    assert decide("FAIL\n", output).decision is CheckDecision.INCOMPLETE
    assert decide(None, output).decision is CheckDecision.INCOMPLETE


@given(st.none() | st.text(), st.text())
def test_no_text_is_too_odd_to_be_decided(file: str | None, output: str) -> None:
    verdict = decide(file, output)

    assert verdict.decision in CheckDecision
    assert (verdict.reason is None) == (verdict.cause is None)


WORDS = st.sampled_from(
    [
        "COMPLETE",
        "INCOMPLETE",
        "FAIL",
        "PASS",
        "not",
        "{",
        "}",
        '"',
        ":",
        "\n",
        " ",
        "**",
        "decision",
        "DECISION:",
        "check_id",
        "c1",
        "c0",
        "```",
        "> ",
        "- ",
        ",",
        "?",
        ".",
    ]
)


@given(st.lists(WORDS, max_size=12).map("".join))
def test_a_line_against_the_work_is_never_outvoted(text: str) -> None:
    assert decide(None, f"{text}\nINCOMPLETE\n").decision is not CheckDecision.COMPLETE


@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_a_document_without_its_id_is_never_complete(text: str) -> None:
    for document in (STALE, '{"decision":"complete"}'):
        assert decide(f"{document}\n{text}").decision is not CheckDecision.COMPLETE


@pytest.mark.parametrize(
    "output",
    [
        "It is anything but\nCOMPLETE",
        "I cannot say\nCOMPLETE",
        "not yet\nCOMPLETE",
        "Das ist noch nicht\nCOMPLETE",
        "90%\nCOMPLETE",
        "Possible values:\n- COMPLETE",
        "Before:\nCOMPLETE",
        "If the tests pass, reply with\nCOMPLETE",
        "DECISION: complete (3 of 4 done)",
        "DECISION: complete - 80%",
        "DECISION: complete, apart from the docs",
        "DECISION: complete - two tests skipped",
        "DECISION: complete - nothing works",
        "VERDICT: PASS: tests are red",
        "VERDICT: PASS - waiting for review",
        "VERDICT: PASS; docs to follow, 2 errors",
        f"Example:\n{GOOD}",
        f"I would answer\n{GOOD}\nonce the tests pass.",
        f"The tests fail, so I cannot write\n{GOOD}",
        f"{GOOD}\n\nActually, disregard that.",
        f"{GOOD}\nunless the review says otherwise",
    ],
)
def test_a_decision_on_a_condition_or_taken_back_is_never_complete(output: str) -> None:
    assert decide(None, output).decision is not CheckDecision.COMPLETE


@pytest.mark.parametrize(
    "output",
    [
        "DECISION: complete - 12 of 12 tests are green, 100% covered, 0 errors",
        "100%\nCOMPLETE",
        f"I couldn't find a problem, so here is the decision in the format you wanted:\n{GOOD}",
        f"When I ran the tests, all passed.\n{GOOD}\nWell done.",
    ],
)
def test_what_is_no_condition_does_not_hold_back_a_decision(output: str) -> None:
    assert decide(None, output).decision is CheckDecision.COMPLETE


@pytest.mark.parametrize("sign", [" ", "\n", "\t"])
def test_a_mebibyte_of_blanks_before_a_word_is_undecidable_within_seconds(sign: str) -> None:
    begun = time.process_time()
    verdict = decide("#" + sign * 1_000_000 + "x")
    assert verdict.cause is UndecidedCause.UNKNOWN_TEXT
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("behind", ["," * 1_000_000, "{}\n" * 300_000])
def test_a_mebibyte_behind_a_decision_is_read_within_seconds(behind: str) -> None:
    begun = time.process_time()
    assert decide(None, '{"decision": "complete"}\n' + behind).decision is not None
    assert time.process_time() - begun < 10
