"""What the bench of alerts calls false."""

from bench.alert_evaluator import Alarm, poisson_interval, sort_alarms
from bench.alert_scenarios import Scenario

BAD = 100, 200


def test_an_alarm_is_false_unless_a_trouble_is_in_what_it_speaks_of() -> None:
    healthy = Scenario("flat", 12, 0.03, 1_000, (1,))
    told = [Scenario("flat", 12, 0.03, 1_000, (1,), 0.25, BAD)] * 4 + [healthy]
    early, early_begun = Alarm(0, 10, 99, None), Alarm(0, 10, 100, None)
    late, again = Alarm(1, 199, 205, None), Alarm(1, 200, 205, None)
    elsewhere = Alarm(4, 110, 120, None)
    found = sort_alarms([early, early_begun, late, again, elsewhere], told)
    assert found.false == [early, again, elsewhere]
    assert found.late == [late]
    assert found.missed == 3


def test_the_interval_of_a_count_is_exact() -> None:
    assert [round(end, 2) for end in poisson_interval(0)] == [0.0, 3.69]
    assert [round(end, 2) for end in poisson_interval(10)] == [4.8, 18.39]
