"""When nobody is told."""

from datetime import UTC, datetime, timedelta

from diagnostics.alerting.rule_models import Silence

FRIDAY = datetime(2026, 10, 23, 20, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def make(filter_: str = "", rule: int | None = None) -> Silence:
    return Silence(starts_at=FRIDAY, ends_at=FRIDAY + HOUR, filter=filter_, rule_id=rule)


def test_it_covers_what_its_terms_name() -> None:
    haiku, one_rule = make("model=haiku"), make(rule=7)
    assert haiku.mutes(FRIDAY, 1, {"provider": "a", "model": "haiku"})
    assert not haiku.mutes(FRIDAY, 1, {"provider": "a", "model": "opus"})
    # A slice of all models is not about this one alone.
    assert not haiku.mutes(FRIDAY, 1, {})
    assert one_rule.mutes(FRIDAY, 7, {})
    assert not one_rule.mutes(FRIDAY, 8, {})
    assert not one_rule.mutes(FRIDAY - HOUR, 7, {})
    assert not one_rule.mutes(FRIDAY + HOUR, 7, {})


def test_a_silenced_kind_covers_what_fails_in_no_other_way() -> None:
    cut, haiku = make("kind=truncated&model=haiku"), {"provider": "a", "model": "haiku"}
    assert cut.mutes(FRIDAY, 1, haiku, ["truncated"])
    assert not cut.mutes(FRIDAY, 1, haiku, ["truncated", "refusal"])
    assert not cut.mutes(FRIDAY, 1, haiku)
    assert not cut.mutes(FRIDAY, 1, {**haiku, "model": "opus"}, ["truncated"])
    others = make("q=-kind:refusal")
    assert others.mutes(FRIDAY, 1, haiku, ["truncated"])
    assert not others.mutes(FRIDAY, 1, haiku, ["truncated", "refusal"])
