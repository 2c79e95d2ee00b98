"""What to change."""

import pytest

from diagnostics.verdict.advice import Evidence, advise
from diagnostics.verdict.suspects import Cause


@pytest.mark.parametrize(
    ("kind", "cause", "is_new", "first", "last"),
    [
        # Fewer calls help against a limit sooner than another provider does.
        ("call_rate_limited", Cause.PROVIDER_OUTAGE, False, "Lower", "Route plans"),
        ("call_timeout", Cause.PROVIDER_OUTAGE, False, "Route plans", "Look at"),
        ("truncated", Cause.MODEL, False, "Raise the budget", "Route plans to another"),
        ("not_json", Cause.PROMPT, True, "Go back", "Ask for"),
        ("not_json", Cause.SCHEMA, True, "Go back", "Ask for"),
        ("refusal", Cause.RELEASE, True, "Roll the release back", "Look at samples"),
        # Nothing can be rolled back where nothing is new.
        ("refusal", Cause.RELEASE, False, "Look at what changed", "Look at samples"),
        ("unknown_tool", Cause.VALIDATOR, False, "Look at what", "Name the registered"),
        ("schema_invalid", Cause.MIXED, False, "Show the field", "Show the field"),
    ],
)
def test_the_cause_and_the_kind_say_what_to_change(
    kind: str, cause: Cause, is_new: bool, first: str, last: str
) -> None:
    advice = advise(kind, cause, Evidence(), is_new=is_new)
    assert advice[0].text.startswith(first)
    assert advice[-1].text.startswith(last)
