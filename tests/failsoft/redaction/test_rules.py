"""Every kind of secret masks its positive examples and leaves its negative ones alone."""

import tomllib
from random import Random
from time import thread_time

import pytest

from failsoft.redaction import FAILED, Redactor
from failsoft.redaction.checks import is_card
from failsoft.redaction.re2_search import BadPatternError, OwnRule, OwnRules
from failsoft.redaction.rules import RULES_FILE, SecretRule, load_rule_set, load_rules
from tests.corpora import each_of
from tests.failsoft.redaction.made_up import EXAMPLES, make

RULES = load_rules()
ALL = Redactor(RULES, {})
ROUNDS = 5


def test_every_kind_has_examples() -> None:
    assert set(EXAMPLES) == {rule.kind for rule in RULES}


@each_of(EXAMPLES)
def test_positive_examples_are_masked_by_the_rules_of_their_kind_and_by_all(kind: str) -> None:
    alone = Redactor([rule for rule in RULES if rule.kind == kind], {})
    for example in EXAMPLES[kind]["positive"]:
        random = Random(example)
        for _ in range(ROUNDS):
            text, pieces = make(example, random)
            for redacted in (alone.redact(text), ALL.redact(text)):
                assert redacted.found, example
                assert not [p for p in pieces if len(p) > 4 and p in redacted.text]


# The examples of cards are in a test of their own.
@each_of(rule for rule in RULES if rule.kind != "card")
def test_every_rule_masks_an_example(rule: SecretRule) -> None:
    alone = Redactor([rule], {})
    examples = EXAMPLES[rule.kind]["positive"]
    assert any(alone.redact(make(example, Random(example))[0]).found for example in examples)


@each_of(EXAMPLES)
def test_negative_examples_are_left_alone(kind: str) -> None:
    for example in EXAMPLES[kind]["negative"]:
        assert ALL.redact(example).text == example


def test_there_are_at_least_sixty_token_families() -> None:
    content = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
    assert len({head for _, heads, *_ in content["tokens"] for head in heads.split()}) >= 60


def test_a_pattern_that_re2_cannot_hold_is_refused_with_what_it_says() -> None:
    with pytest.raises(BadPatternError, match=r"backreference|invalid escape"):
        OwnRules([OwnRule("mine", r"(a)\1")])


@pytest.mark.parametrize("pattern", ["", "x*", "a" * 501, "(a{1000}){1000}", "("])
def test_a_pattern_that_is_empty_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(BadPatternError):
        OwnRules([OwnRule("mine", pattern)])


def test_a_project_masks_what_its_own_rules_find() -> None:
    own = OwnRules([OwnRule("ticket", r"(?i)case ([A-Z]{2}-[0-9]{4})")])
    redacted = ALL.with_own(own).redact("see Case AB-1234 and case x")
    assert redacted.text == "see Case [REDACTED:ticket] and case x"
    assert redacted.found == ("ticket",)
    assert ALL.redact("see Case AB-1234").found == ()


def test_mail_addresses_are_masked_when_the_policy_says_so() -> None:
    random = Random(3)
    strict = Redactor(load_rule_set(emails=True), {})
    text = make("write to {word:8}@{word:6}.test", random)[0]
    assert strict.redact(text).text == "write to [REDACTED:email]"
    assert ALL.redact(text).text == text
    for example in ("at @ a time", "@decorator.name"):
        assert strict.redact(example).text == example


@pytest.mark.parametrize(
    ("number", "is_card"),
    [
        ("4{digit:14}", True),
        ("5{digit:14}", True),
        ("3530{digit:11}", True),
        ("9{digit:14}", False),
        ("41{digit:13}", True),
    ],
)
def test_cards_are_told_by_issuer_length_and_sum(number: str, is_card: bool) -> None:
    random = Random(7)
    for _ in range(20):
        digits = make(number, random)[0]
        whole = digits + luhn_digit(digits)
        grouped = " ".join(whole[at : at + 4] for at in range(0, 16, 4))
        wrong = digits + str((int(whole[-1]) + 1) % 10)
        expected = "[REDACTED:card]" if is_card else grouped
        assert ALL.redact(f"card {grouped}").text == f"card {expected}"
        assert ALL.redact(f"card {wrong}").text == f"card {wrong}"


def test_a_number_of_no_length_a_card_has_is_left_alone() -> None:
    assert not is_card(b"4" + b"0" * 13)


def luhn_digit(digits: str) -> str:
    """Give the last digit that makes the sum right."""
    for last in "0123456789":
        numbers = [int(digit) for digit in digits + last]
        doubled = [sum(divmod(2 * number, 10)) for number in numbers[-2::-2]]
        if (sum(numbers[-1::-2]) + sum(doubled)) % 10 == 0:
            return last
    raise AssertionError


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("Müller", "für Müller und Muller", "für [REDACTED:own] und Muller"),
        (
            "(?i)kunde ([ÄÖÜ]-[0-9]+)",
            "Kunde ü-12, Kunde ä-7",
            "Kunde [REDACTED:own], Kunde [REDACTED:own]",
        ),
        (r"\p{Greek}+", "a αβγ b", "a [REDACTED:own] b"),
        ("项目-[0-9]+", "见 项目-42。", "见 [REDACTED:own]。"),
        ("CASE-[0-9]+", "für CASE-1 \ud800 CASE-2", "für [REDACTED:own] \ud800 [REDACTED:own]"),
    ],
)
def test_an_own_rule_finds_any_alphabet(pattern: str, text: str, expected: str) -> None:
    redacted = ALL.with_own(OwnRules([OwnRule("own", pattern)])).redact(text)
    assert redacted.text == expected


# Each match is found only after the rest of the text has been read.
READS_ON = OwnRules([OwnRule("own", "(?s).*q|1")])


def test_a_rule_that_reads_the_rest_at_each_match_fails_closed_in_time() -> None:
    begin = thread_time()
    redacted = ALL.with_own(READS_ON).redact("1" * 65_536)
    assert thread_time() - begin < 2
    assert redacted == (FAILED, ("failed",))


def test_many_matches_of_several_rules_take_no_such_time() -> None:
    own = OwnRules([OwnRule("a", "[0-9]"), OwnRule("b", "[1-3][4-6]"), OwnRule("c", "x+y|x")])
    assert ALL.with_own(own).redact("1x" * 32_768).found == ("a", "c")
