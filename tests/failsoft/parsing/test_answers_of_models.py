"""Answers as models write them are read as they are meant, or refused with the right kind."""

from pathlib import Path

from failsoft.parsing import RefusedAnswer, recover
from tests.model_answers import Answer, Refusal, read_answers, run, unexpected

ANSWERS = read_answers(Path(__file__).parent / "answers_of_models.toml")


def read(answer: Answer) -> object:
    outcome = recover(answer.told["input"], answer.told.get("finish_reason"))
    if isinstance(outcome, RefusedAnswer):
        return Refusal(outcome.error_type.value)
    return outcome.value


def test_each_answer_is_read_as_it_is_meant_or_refused_with_the_right_kind() -> None:
    faults = unexpected(run(ANSWERS, read))
    assert not faults, "\n".join(faults)
