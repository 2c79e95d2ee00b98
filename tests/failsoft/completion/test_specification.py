"""The shape of a completion check, and the paths it may name."""

from typing import Any

import pytest
from pydantic import ValidationError

from failsoft.completion.specification import CheckSpec, PathRefusedError, read_relative_path


def refusal(**fields: Any) -> dict[str, Any]:
    with pytest.raises(ValidationError) as caught:
        CheckSpec.model_validate(fields)
    error: dict[str, Any] = dict(caught.value.errors()[0])
    return error


def test_a_check_is_one_of_three_kinds() -> None:
    assert CheckSpec(kind="tool", tool="echo").checker == "echo"
    assert CheckSpec(kind="command", command="review").checker == "review"
    assert CheckSpec(kind="model").checker == ""
    assert refusal(kind="oracle")["type"] == "literal_error"


@pytest.mark.parametrize("kind", ["tool", "command"])
def test_a_kind_needs_its_name(kind: str) -> None:
    assert refusal(kind=kind)["ctx"]["field"] == kind


def test_what_a_kind_has_no_use_for_is_refused_by_name() -> None:
    refused = refusal(kind="model", decision_file="a")
    assert (refused["type"], refused["ctx"]["field"]) == ("not_wanted", "decision_file")
    assert refusal(kind="command", command="a", instructions="b")["ctx"]["field"] == (
        "instructions"
    )
    assert refusal(kind="tool", tool="a", timeout_seconds=3)["ctx"]["field"] == ("timeout_seconds")


def test_unknown_keys_are_refused_by_name() -> None:
    assert refusal(kind="model", decision_fil="a")["loc"] == ("decision_fil",)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../a",
        "a/../b",
        "a//b",
        "./a",
        "a/.",
        "~/a",
        "a\\b",
        "C:a",
        "a\nb",
        "a\x00b",
        "/".join("abcdefghijk"),
        "a" * 500,
    ],
)
def test_a_path_that_leads_out_is_refused(path: str) -> None:
    with pytest.raises(PathRefusedError):
        read_relative_path(path)
    assert refusal(kind="command", command="a", decision_file=path)["type"] == ("path_refused")


def test_a_plain_path_is_taken_apart() -> None:
    path = ".roboppi-loop/review.verdict"
    assert read_relative_path(path) == (".roboppi-loop", "review.verdict")
