"""The interval that the bench of alerts prints."""

from bench.alerts import poisson_interval


def test_the_interval_of_a_count_is_exact() -> None:
    assert [round(end, 2) for end in poisson_interval(0)] == [0.0, 3.69]
    assert [round(end, 2) for end in poisson_interval(10)] == [4.8, 18.39]
