"""What a rule or a silence is bound to: nothing that is written is left out in silence."""

import pytest

from diagnostics.alerting.rules import (
    LONGEST_FILTER,
    FilterError,
    check_filter,
    filter_of,
    terms_of,
)
from diagnostics.alerting.signals import Slice
from diagnostics.selection.selection import keeps_all


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("", ""),
        ("model=m-1&provider=acme", "provider=acme&model=m-1"),
        ("provider=&model=m-1", "model=m-1"),  # as a form of a page leaves it
        ("range=7d&model=m-1", "model=m-1"),
        ("model:m-1", "q=model%3Am-1"),
        ("model:m-1 -env:dev", "q=model%3Am-1+-env%3Adev"),
        ("q=model%3Am-1", "q=model%3Am-1"),
        ("provider:openai model:=gpt-4.1", "q=provider%3Aopenai+model%3A%3Dgpt-4.1"),
    ],
)
def test_a_filter_is_written_as_in_an_address_or_in_its_box(written: str, kept: str) -> None:
    assert check_filter(written) == kept
    assert check_filter(kept) == kept
    assert bool(terms_of(kept)) == bool(written)


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("modle=m-1", "modle"),
        ("modle:m-1", "modle"),
        ("model=m-1&acme", "acme"),
        ("model=m-1&model=m-2", "model twice"),
        ("model:m-1 provider=acme", "provider=acme"),
        ("provider:openai model:=gpt-4.1 kind:truncated", "kind:truncated"),
        ("weather", "weather"),
        ("kind:truncated", "kind"),
        ("model=m-1&kind=truncated&q=weather", "kind:truncated, weather"),
        ("model=m&" + "x" * LONGEST_FILTER, "more than 1000 characters"),
    ],
)
def test_what_nothing_can_be_watched_by_is_named_and_never_means_all_calls(
    written: str, named: str
) -> None:
    with pytest.raises(FilterError, match="only environment, node, provider and model can be used"):
        check_filter(written)
    with pytest.raises(FilterError, match=f"refused: .*{named}"):
        check_filter(written)


def test_an_exact_name_does_not_cover_a_longer_one() -> None:
    terms = terms_of(check_filter("provider:openai model:=gpt-4.1"))
    assert keeps_all(terms, {"provider": "openai", "model": "gpt-4.1"})
    assert not keeps_all(terms, {"provider": "openai", "model": "gpt-4.1-mini"})


def test_kinds_narrow_only_what_counts_them() -> None:
    assert check_filter("model:m-1 kind:truncated", ("kind",)) == "q=model%3Am-1+kind%3Atruncated"
    with pytest.raises(FilterError, match="refused: kind:retry"):
        check_filter("kind:retry", ("kind",))


def test_a_filter_is_bounded() -> None:
    longest = "model:".ljust(LONGEST_FILTER, "m")

    assert check_filter(longest)
    with pytest.raises(FilterError, match="1000 characters"):
        check_filter(f"{longest}m")


def test_the_filter_of_slices_covers_their_values_and_no_others() -> None:
    model: Slice = {"provider": "acme", "model": "m-1"}
    plan: Slice = {"environment": "prod", "node": "plan", **model}
    slices = [plan, {**plan, "node": "next_step"}, {**plan, "provider": None}]
    terms = terms_of(filter_of(slices))
    assert all(keeps_all(terms, one) for one in slices)
    others = [{**plan, "node": "tools"}, {**plan, "environment": "dev"}, {**plan, "provider": "x"}]
    assert not any(keeps_all(terms, one) for one in others)
    assert filter_of([plan, {"model": "m-1"}]) == "model=m-1"
    many: list[Slice] = [{"node": "plan", "model": f"m-{number}"} for number in range(50)]
    assert filter_of(many) == "node=plan"
