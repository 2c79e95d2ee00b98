"""When nobody is told."""

from datetime import UTC, datetime, timedelta

from diagnostics.alerting.silences import ActiveSilence, is_silenced
from diagnostics.selection.query_language import Term

FRIDAY = datetime(2026, 10, 23, 20, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_it_covers_what_its_terms_name() -> None:
    haiku = ActiveSilence(FRIDAY, FRIDAY + HOUR, (Term("model", "haiku"),))
    one_rule = ActiveSilence(FRIDAY, FRIDAY + HOUR, rule=7)
    assert haiku.covers(1, {"provider": "a", "model": "haiku"})
    assert not haiku.covers(1, {"provider": "a", "model": "opus"})
    # A slice of all models is not about this one alone.
    assert not haiku.covers(1, {})
    assert is_silenced([haiku, one_rule], FRIDAY, 7, {})
    assert not is_silenced([haiku, one_rule], FRIDAY, 8, {})
    assert not is_silenced([one_rule], FRIDAY + 2 * HOUR, 7, {})


def test_a_silenced_kind_covers_what_fails_in_no_other_way() -> None:
    cut = ActiveSilence(FRIDAY, FRIDAY + HOUR, (Term("kind", "truncated"), Term("model", "haiku")))
    haiku = {"provider": "a", "model": "haiku"}
    assert cut.covers(1, haiku, ["truncated"])
    assert not cut.covers(1, haiku, ["truncated", "refusal"])
    assert not cut.covers(1, haiku)
    assert not cut.covers(1, {**haiku, "model": "opus"}, ["truncated"])
    others = ActiveSilence(FRIDAY, FRIDAY + HOUR, (Term("kind", "refusal", is_negated=True),))
    assert others.covers(1, haiku, ["truncated"])
    assert not others.covers(1, haiku, ["truncated", "refusal"])
