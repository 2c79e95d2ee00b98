"""RetryConfig: two names for one number, a ceiling, and refusals that name the key (X-2)."""

import pytest
from pydantic import ValidationError

from failsoft.retry.policy import PRESETS, RetryConfig


def test_the_documented_defaults() -> None:
    assert RetryConfig().model_dump() == {
        "max_retries": 2,
        "send_error_feedback": True,
        "simplify_on_final_attempt": True,
        "use_stub_fallback": False,
    }


def test_the_documented_presets() -> None:
    assert {
        name: RetryConfig.from_layers(preset).max_attempts for name, preset in PRESETS.items()
    } == {"dev": 3, "prod": 2, "cost-conscious": 1}


@pytest.mark.parametrize("name", ["max_attempts", "max_retries"])
@pytest.mark.parametrize("number", [1, 2, 5])
def test_both_names_mean_the_total_of_calls(name: str, number: int) -> None:
    assert RetryConfig.model_validate({name: number}).max_attempts == number


def test_both_names_at_once_may_agree() -> None:
    both = {"max_attempts": 3, "max_retries": 3}

    assert RetryConfig.model_validate(both).max_attempts == 3


def test_different_values_at_once_are_refused() -> None:
    with pytest.raises(ValidationError, match="different values"):
        RetryConfig.model_validate({"max_attempts": 3, "max_retries": 2})


@pytest.mark.parametrize("name", ["max_attempts", "max_retries"])
@pytest.mark.parametrize("value", [0, -1, 6, "3", 2.5, True, None])
def test_a_bad_number_is_refused_under_the_name_it_was_given(name: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        RetryConfig.model_validate({name: value})

    assert caught.value.errors()[0]["loc"] == (name,)


def test_an_unknown_key_is_refused_by_name() -> None:
    with pytest.raises(ValidationError) as caught:
        RetryConfig.model_validate({"max_tries": 3})

    assert caught.value.errors()[0]["loc"] == ("max_tries",)


@pytest.mark.parametrize(
    ("layers", "number"),
    [
        ([{}], 2),
        ([{"max_retries": 3}, {"max_attempts": 4}], 4),
        ([{"max_attempts": 3}, {"max_retries": 4}], 4),
        ([{"max_attempts": 3}, {"send_error_feedback": False}], 3),
    ],
)
def test_the_stronger_layer_wins(layers: list[dict[str, object]], number: int) -> None:
    assert RetryConfig.from_layers(*layers).max_attempts == number
