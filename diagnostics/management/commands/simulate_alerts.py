"""`manage.py simulate_alerts`: run a detector over given calls, JSON Lines, no database."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf, isfinite
from typing import IO, Any

from diagnostics.analysis.detectors.change import Fire
from diagnostics.analysis.detectors.replay import Call, Detector, replay, replay_together
from diagnostics.analysis.detectors.thresholds import (
    COUNT_SECONDS,
    DEFAULT_FAILED,
    DEFAULT_LIMIT,
    Parameters,
)
from diagnostics.management import LinesCommand
from failsoft.json_lines import Line, LineError, answer_lines, answer_together


class Command(LinesCommand):
    """Read `{"id", "calls"}` lines, write `{"id", "fires": [{"at", "onset", "cleared"}]}`."""

    help = (
        "Read calls of series from standard input, one JSON object a line: "
        '{"id": ..., "calls": [[seconds, failed], ...], "baseline": 0.03}; each line is a '
        "series, all of them are one project to `change`, which reads them all "
        "first. Times are seconds, failed is true or false, the baseline is "
        "optional."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--detector", required=True, choices=list(Detector))
        parser.add_argument(
            "--limit",
            type=_read_number(float, is_share=True),
            default=DEFAULT_LIMIT,
            help="the rate that `threshold` compares with, 0 to 1 (default 0.05)",
        )
        parser.add_argument(
            "--count",
            type=_read_number(int),
            default=DEFAULT_FAILED,
            help="the failures at which `count` fires (default 3)",
        )
        parser.add_argument(
            "--within",
            type=_read_number(float),
            default=COUNT_SECONDS,
            metavar="SECONDS",
            help="the window of `count` (default 3600)",
        )
        parser.add_argument(
            "--series",
            type=_read_number(int),
            help="how many series share one false `change` a week (default: the lines)",
        )

    def answers(self, lines: IO[bytes], options: Mapping[str, Any]) -> Iterator[Line]:
        limits = Parameters(options["limit"], options["count"], options["within"])
        detector = Detector(options["detector"])
        empty: Line = {"fires": []}
        if detector is Detector.CHANGE:
            answer = partial(_answer_together, options["series"])
            return answer_together(lines, _read, answer, empty)
        return answer_lines(lines, partial(_answer, detector, limits), empty)


SeriesInput = tuple[list[Call], float | None]
Reader = Callable[[str], float]


def _read(line: Line) -> SeriesInput:
    return _read_calls(line), _read_baseline(line)


def _answer_together(series: int | None, inputs: list[SeriesInput]) -> list[Line]:
    results = replay_together(
        [calls for calls, _ in inputs], [baseline for _, baseline in inputs], series
    )
    return [_describe_fires(fires) for fires in results]


def _answer(detector: Detector, limits: Parameters, line: Line) -> Line:
    calls, _ = _read(line)
    return _describe_fires(replay(detector, calls, limits))


def _describe_fires(fires: Sequence[Fire]) -> Line:
    rows = [{"at": fire.at, "onset": fire.onset.at, "cleared": fire.cleared} for fire in fires]
    return {"fires": rows}


def _read_calls(line: Line) -> list[Call]:
    calls = line.get("calls")
    if not isinstance(calls, list):
        raise LineError('"calls" must be a list')
    return sorted(_read_call(place, call) for place, call in enumerate(calls))


def _read_call(place: int, call: object) -> Call:
    match call:
        case [int() | float() as at, bool() | 0 | 1 as failed]:
            if isfinite(at) and not isinstance(at, bool):
                return float(at), int(failed)
    raise LineError(f"calls[{place}] must be [seconds, failed], failed true or false")


def _read_baseline(line: Line) -> float | None:
    baseline = line.get("baseline")
    if baseline is None:
        return None
    is_number = isinstance(baseline, int | float) and not isinstance(baseline, bool)
    if not is_number or not 0 <= baseline <= 1:
        raise LineError('"baseline" must be between 0 and 1')
    return float(baseline)


def _read_number(kind: type[int] | type[float], *, is_share: bool = False) -> Reader:
    expected = "a share above 0 and below 1" if is_share else "a number above 0"

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(0)
        if not 0 < number < (1 if is_share else inf):
            raise ArgumentTypeError(f"{expected}, not {text}")
        return number

    return read
