"""Every rule masks its positive examples and leaves its negative ones alone."""

from random import Random

import pytest

from diagnostics.core.redaction import Redactor
from diagnostics.core.redaction.checks import is_card
from diagnostics.core.redaction.rules import BadRuleError, Rule, RuleSet, load_rules
from tests.diagnostics.core.redaction.made_up import make

RULES = load_rules()
ALL = Redactor(RULES, {})
ROUNDS = 5


def positives() -> list[tuple[Rule, str]]:
    return [(rule, example) for rule in RULES for example in rule.positive]


@pytest.mark.parametrize(("rule", "example"), positives())
def test_a_positive_example_is_masked_by_its_rule_and_by_all(
    rule: Rule, example: str
) -> None:
    random = Random(example)
    for redactor in (Redactor([rule], {}), ALL):
        for _ in range(ROUNDS):
            text, pieces = make(example, random)
            redacted = redactor.redact(text)
            assert redacted.found
            assert not [p for p in pieces if len(p) > 4 and p in redacted.text]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_negative_examples_are_left_alone(rule: Rule) -> None:
    for example in rule.negative:
        assert ALL.redact(example).text == example


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES) >= 25


def test_a_rule_that_re2_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(BadRuleError, match="back"):
        RuleSet([Rule("back", "x", r"(a)\1")])


@pytest.mark.parametrize(
    ("number", "is_card"),
    [
        ("4{digit:14}", True),
        ("5{digit:14}", True),
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
