"""What a rule may be told, and what it is told where nothing was said."""

from math import inf, nan
from typing import Any

import pytest

from diagnostics.alerting.rules import DETECTORS, ParametersError, check_parameters, read_parameters
from diagnostics.alerting.signals import RATIOS, Signal
from diagnostics.analysis.detectors.thresholds import Parameters


@pytest.mark.parametrize("signal", Signal)
def test_every_signal_is_judged_by_its_own_detectors_and_no_other(signal: Signal) -> None:
    able = {Signal.LATENCY_P95: {"threshold"}, Signal.SOURCE_SILENT: {"absent"}}.get(
        signal, {"change", "threshold"} if signal in RATIOS else {"count"}
    )
    assert set(DETECTORS[signal]) == able
    for detector in ("change", "threshold", "count", "absent"):
        if detector in able:
            check_parameters(signal, detector, {})
        else:
            with pytest.raises(ParametersError, match=f"{signal} supports"):
                check_parameters(signal, detector, {})


@pytest.mark.parametrize(
    ("signal", "detector", "usual"),
    [
        ("degraded_ratio", "change", {}),
        ("degraded_ratio", "threshold", {"limit": 0.05}),
        ("repair_success_ratio", "threshold", {"limit": 0.6}),  # the lowest success
        ("latency_p95", "threshold", {"limit": 30_000}),  # milliseconds
        ("degraded_count", "count", {"count": 3, "seconds": 3600}),
        ("new_group", "count", {"count": 1, "seconds": 3600}),  # one is news
        ("source_silent", "absent", {"seconds": 3600}),
    ],
)
def test_what_was_not_told_is_as_usual(signal: str, detector: str, usual: dict[str, float]) -> None:
    assert check_parameters(signal, detector, {}) == usual


@pytest.mark.parametrize(
    ("signal", "detector", "given", "fault"),
    [
        ("no_such", "count", {}, "signal"),
        ("degraded_ratio", "count", {}, "detector"),
        ("degraded_ratio", "threshold", [], "parameters"),
        ("degraded_ratio", "threshold", "limit", "parameters"),
        ("degraded_ratio", "threshold", {"count": 1}, "parameters.count"),
        ("degraded_ratio", "threshold", {"limit": 0}, "parameters.limit"),
        ("degraded_ratio", "threshold", {"limit": 1}, "parameters.limit"),
        ("degraded_ratio", "threshold", {"limit": nan}, "parameters.limit"),
        ("degraded_ratio", "threshold", {"limit": inf}, "parameters.limit"),
        ("degraded_ratio", "threshold", {"limit": True}, "parameters.limit"),
        ("degraded_ratio", "threshold", {"limit": "0.1"}, "parameters.limit"),
        ("latency_p95", "threshold", {"limit": 3_600_000}, "parameters.limit"),
        ("degraded_count", "count", {"count": 0}, "parameters.count"),
        ("degraded_count", "count", {"seconds": 59}, "parameters.seconds"),
        ("degraded_count", "count", {"seconds": 21_601}, "parameters.seconds"),
        ("degraded_count", "count", {"seconds": 90.5}, "parameters.seconds"),
        ("source_silent", "absent", {"seconds": 2_592_001}, "parameters.seconds"),
        ("degraded_ratio", "burn", {"budget": 0.1}, "detector"),
    ],
)
def test_a_figure_that_makes_no_sense_is_refused_by_its_name(
    signal: str, detector: str, given: Any, fault: str
) -> None:
    with pytest.raises(ParametersError) as refused:
        check_parameters(signal, detector, given)
    assert list(refused.value.faults) == [fault]


@pytest.mark.parametrize(
    ("signal", "detector", "given"),
    [
        ("degraded_count", "count", {"seconds": 60}),
        ("degraded_count", "count", {"seconds": 21_600}),  # six hours
        ("source_silent", "absent", {"seconds": 2_592_000}),  # thirty days
        ("latency_p95", "threshold", {"limit": 3_599_999}),
    ],
)
def test_the_ends_of_what_is_allowed_are_allowed(
    signal: str, detector: str, given: dict[str, Any]
) -> None:
    kept = check_parameters(signal, detector, given)
    assert {name: kept[name] for name in given} == given


def test_a_lowest_success_is_read_as_a_highest_failure() -> None:
    found = read_parameters("repair_success_ratio", {"limit": 0.9})
    assert found.limit == pytest.approx(0.1)
    assert read_parameters("degraded_ratio", {"limit": 0.9}) == Parameters(limit=0.9)


def test_money_is_compared_in_millionths() -> None:
    told = {"count": 2.5, "seconds": 600}
    assert read_parameters("retry_money", told).count == 2_500_000
    assert read_parameters("retry_tokens", told).count == 2.5
