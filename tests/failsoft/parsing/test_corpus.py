"""Every case of the corpus: the exact value, or the refusal at the exact place."""

from collections import Counter

from failsoft.parsing import Recovered, RefusedAnswer, recover
from failsoft.parsing.tracing import same
from tests.corpora import each_of
from tests.failsoft.parsing.corpus import Case, read_cases

CASES = read_cases()


@each_of(CASES)
def test_each_case_is_read_or_refused_as_the_policy_says(case: Case) -> None:
    outcome = recover(case.text, case.finish_reason)
    if case.is_recoverable:
        assert isinstance(outcome, Recovered), outcome
        assert same(outcome.value, case.value), outcome.value
    else:
        assert isinstance(outcome, RefusedAnswer), outcome
        place = outcome.error_type.value, outcome.line, outcome.column
        assert place == (case.error_type, case.line, case.column)


@each_of(CASES)
def test_x_12_no_repair_is_silent(case: Case) -> None:
    outcome = recover(case.text, case.finish_reason)
    if not isinstance(outcome, Recovered):
        return
    is_plain = same(recover(case.text.strip()), recover(case.text)) and _is_strict(case.text)
    assert bool(outcome.repairs) != is_plain or case.finish_reason is not None


def _is_strict(text: str) -> bool:
    from_strict = recover(text)
    return isinstance(from_strict, Recovered) and not from_strict.repairs


def test_s1_12_a_refusal_shows_the_line_with_a_caret_and_what_was_expected() -> None:
    outcome = recover('{\n  "a": 1,\n  "b": 2 "c"\n}')
    assert isinstance(outcome, RefusedAnswer)
    assert (outcome.line, outcome.column) == (3, 10)
    assert outcome.excerpt == '  "b": 2 "c"\n         ^'
    assert outcome.message.startswith("line 3, column 10: expected `,` or `}`")


def test_the_corpus_is_as_large_as_promised() -> None:
    verdicts = Counter(case.is_recoverable for case in CASES)
    assert len(CASES) >= 300
    assert verdicts[True] >= 150
    assert verdicts[False] >= 100
    assert len({case.name for case in CASES}) == len(CASES)
