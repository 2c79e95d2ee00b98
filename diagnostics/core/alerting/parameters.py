"""What a rule is told: which detector goes with which signal, and its figures, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from diagnostics.core.alerting.signals import RATIOS, Signal
from diagnostics.core.detectors.burn import (
    DEFAULT_BUDGET,
    HIGHEST_SHARE,
    PACES,
    capped_factor,
)
from diagnostics.core.detectors.count import DEFAULT_FAILED, DEFAULT_SECONDS

LONGEST_WINDOW = 6 * 3600
SHORTEST_WINDOW = 60
MOST = 10**12
LONGEST_SILENCE = 30 * 86_400
MONEY_UNITS = 1_000_000
"""Money is counted in millionths, so that counts stay whole numbers."""

DETECTORS: Mapping[Signal, tuple[str, ...]] = {
    signal: ("change", "threshold", "burn")
    if signal in RATIOS
    else {Signal.LATENCY_P95: ("threshold",), Signal.SOURCE_SILENT: ("absent",)}.get(
        signal, ("count",)
    )
    for signal in Signal
}
"""The detectors that can judge each signal; the first is the usual one."""


class ParametersError(ValueError):
    """the parameters of a rule are wrong; `faults` says of each one why"""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in faults.items()))
        self.faults = dict(faults)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is compared; each detector looks at its own.

    `limit` is a share (0 to 1) or milliseconds, `count` a number (money in millionths),
    `seconds` a window or a silence, `budget` a share and `factor` its fast pace.
    """

    limit: float = 0.05
    count: float = DEFAULT_FAILED
    seconds: int = DEFAULT_SECONDS
    budget: float = DEFAULT_BUDGET
    factor: float = PACES[0].factor


ALLOWED: Mapping[str, tuple[str, ...]] = {
    "change": (),
    "threshold": ("limit",),
    "count": ("count", "seconds"),
    "absent": ("seconds",),
    "burn": ("budget", "factor"),
}


def check_parameters(
    signal: str, detector: str, given: Mapping[str, Any]
) -> dict[str, float | int]:
    """Check and complete the parameters of a rule; gives what is to be kept.

    The factor of `burn` is capped at 0.5 / budget: a rate of 100 % could never reach more.
    Raises ParametersError.
    """
    if signal not in list(Signal):
        raise ParametersError({"signal": f"one of {', '.join(Signal)}"})
    able = DETECTORS[Signal(signal)]
    if detector not in able:
        raise ParametersError({"detector": f"{signal} goes with {', '.join(able)}"})
    if not isinstance(given, Mapping):
        raise ParametersError({"parameters": "an object"})
    allowed = ALLOWED[detector]
    faults = {
        f"parameters.{str(name)[:40]}": f"unknown; {detector} takes {_listed(allowed)}"
        for name in given
        if name not in allowed
    }
    kept = {name: given.get(name, _default(signal, name)) for name in allowed}
    faults |= {
        f"parameters.{name}": fault
        for name, value in kept.items()
        if (fault := _fault(signal, detector, name, value))
    }
    if faults:
        raise ParametersError(faults)
    if detector == "burn":
        kept["factor"] = capped_factor(kept["factor"], kept["budget"])
    return kept


def read_parameters(signal: str, kept: Mapping[str, Any]) -> Parameters:
    """Read what was kept: a lowest success becomes a highest failure."""
    if signal == Signal.REPAIR_SUCCESS_RATIO and "limit" in kept:
        kept = {**kept, "limit": 1 - kept["limit"]}
    if signal == Signal.RETRY_MONEY and "count" in kept:
        kept = {**kept, "count": kept["count"] * MONEY_UNITS}
    return Parameters(**kept)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "no parameter"


def _default(signal: str, name: str) -> float | int:
    if name == "limit" and signal == Signal.LATENCY_P95:
        return 30_000
    if name == "limit" and signal == Signal.REPAIR_SUCCESS_RATIO:
        return 0.6
    if name == "count" and signal != Signal.DEGRADED_COUNT:
        return 1
    return float(getattr(Parameters(), name)) if name != "seconds" else DEFAULT_SECONDS


def _fault(signal: str, detector: str, name: str, value: object) -> str | None:
    low, high = _bounds(signal, detector, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    if not isfinite(value) or not low < value < high:
        return f"above {low:g} and below {high:g}"
    if name == "seconds" and value != int(value):
        return "whole seconds"
    return None


def _bounds(signal: str, detector: str, name: str) -> tuple[float, float]:
    if name == "limit":
        return (0, 3_600_000) if signal == Signal.LATENCY_P95 else (0, 1)
    if name == "budget":
        return 0, HIGHEST_SHARE
    if name == "seconds" and detector == "count":
        return SHORTEST_WINDOW - 1, LONGEST_WINDOW + 1
    if name == "seconds":
        return SHORTEST_WINDOW - 1, LONGEST_SILENCE + 1
    return 0, MOST
