"""Shorthand of constraints: what it stands for."""

from django.db.models import Q

from diagnostics.constraints import check, index, known, unique


def test_words_are_a_text_or_values() -> None:
    expected = check("known", Q(("kind__in", ["a", "b"])))
    assert known("known", "kind", "a b") == expected
    assert known("known", "kind", ("a", "b")) == expected


def test_each_of_several_columns_holds_one_of_the_words() -> None:
    expected = Q(("to__in", ["a"]), ("was__in", ["a"]))
    assert known("known", "to was", "a") == check("known", expected)


def test_null_may_be_allowed() -> None:
    expected = Q(kind__isnull=True) | Q(kind__in=["a"])
    assert known("known", "kind", "a", or_null=True) == check("known", expected)


def test_columns_keep_their_order() -> None:
    assert index("newest", "project -id").fields == ["project", "-id"]
    assert unique("once", "project name").fields == ("project", "name")
