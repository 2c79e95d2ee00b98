"""What stands beside the verdict: which other series are to be looked at."""

from collections import Counter
from collections.abc import Sequence

from diagnostics.core.charts.mark import Tone
from diagnostics.core.series import MINIMUM_RUNS
from diagnostics.core.standing import Standing, Subject
from diagnostics.core.wording import plural

NAMED_BESIDE = 3
TONES: dict[str, Tone] = {"degrading": "bad", "ok": "good", "not_enough_data": "quiet"}


def tone_of(state: str, subjects: Sequence[Subject]) -> Tone:
    """Give the tone of a verdict; all is well only if no series is to be watched."""
    tone = TONES[state]
    is_watched = any(s.standing in (Standing.DEGRADING, Standing.WATCH) for s in subjects)
    return "warn" if tone == "good" and is_watched else tone


def beside(subjects: Sequence[Subject], hit: Sequence[Subject]) -> str:
    """Name the series that the verdict is not about, by how they stand."""
    others = [subject for subject in subjects if subject not in hit]
    bad = [one for one in others if one.standing is Standing.DEGRADING]
    watched = [one for one in others if one.standing is Standing.WATCH]
    raised = [one for one in others if one.standing is Standing.RAISED]
    told = [f"Affected: {_places(hit)}."] if hit else []
    told += [f"{'Also degrading' if hit else 'Degrading'}: {_names(bad)}."] if bad else []
    told += [f"To watch: {_names(watched)}."] if watched else []
    told += [f"Above usual: {_names(raised)}."] if raised else []
    count = Counter(subject.standing for subject in others)
    calm, few = count[Standing.OK], count[Standing.FEW_RUNS]
    told += [f"{plural(calm, 'series', 'series')} within baseline."] if calm else []
    told += [f"{few} with fewer than {MINIMUM_RUNS} runs."] if few else []
    return " ".join(told)


def _places(subjects: Sequence[Subject]) -> str:
    return _listed(list(dict.fromkeys(subject.place for subject in subjects)))


def _names(subjects: Sequence[Subject]) -> str:
    return _listed([f"{subject.name} ({subject.place})" for subject in subjects])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED_BESIDE
    return ", ".join(names[:NAMED_BESIDE]) + (f" and {more} more" if more > 0 else "")
