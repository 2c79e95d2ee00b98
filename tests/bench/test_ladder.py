"""S1-84: the bench of the ladder measures, and finds little."""

from bench.ladder import measure


def test_s1_61_and_s1_84_a_good_first_answer_costs_little_more_than_the_bare_call() -> None:
    bare, ladder = measure(delay_seconds=0.05, rounds=9)

    assert bare >= 0.05
    assert ladder / bare < 1.5
