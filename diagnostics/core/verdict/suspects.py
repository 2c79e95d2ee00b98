"""What could have caused an excess, and how well each suspect explains what was counted.

A suspect says: calls that touch me fail more than usual, all others as usual. How much
likelier that makes the counts is its weight, less what its freedom to fit costs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log, sqrt

from diagnostics.core.rollups import FAILURE_KINDS
from diagnostics.core.verdict.cells import TRANSPORT, Cell, Place, Usual
from diagnostics.core.verdict.novelty import UNTIMED, Timing, is_new

HIGHEST_SHARE = 0.995
LEAST_SHARE = 0.005


class Cause(StrEnum):
    """Where a degradation comes from, as it is told outside."""

    PROVIDER_OUTAGE = "provider_outage"
    MODEL = "model"
    PROMPT = "prompt"
    SCHEMA = "schema"
    RELEASE = "release"
    VALIDATOR = "validator"
    MIXED = "mixed"
    NOT_ENOUGH_DATA = "not_enough_data"


DIMENSIONS: Mapping[Cause, Callable[[Place], str | None]] = {
    Cause.PROMPT: lambda place: place.prompt_version,
    Cause.SCHEMA: lambda place: _joined(place.schema, place.schema_version),
    Cause.RELEASE: lambda place: _joined(place.source, place.release),
}
"""The dimensions that are ours, and can be new."""


def _joined(name: str | None, version: str | None) -> str | None:
    if version is None:
        return None
    return f"{name} {version}" if name else version


@dataclass(frozen=True, slots=True)
class Suspect:
    """One possible cause: which cells it touches, and which kinds of failure it makes."""

    cause: Cause
    value: str
    touches: Callable[[Place], bool]
    kinds: frozenset[str] = frozenset(FAILURE_KINDS)
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Explained:
    """How well a suspect explains the counts: the larger the weight, the better."""

    suspect: Suspect
    weight: float
    excess: float
    models: int
    elsewhere: float
    """Excess that it leaves unexplained, beyond chance."""
    rest: float
    """The weight of what it leaves unexplained."""

    @property
    def share(self) -> float:
        """The part of the excess that it explains."""
        return self.excess / (self.excess + self.elsewhere) if self.excess > 0 else 0.0


def suspects_of(
    cells: Sequence[Cell], before: Sequence[Cell], timing: Timing = UNTIMED
) -> list[Suspect]:
    """Name everything that the cells could be blamed on."""
    found = [*_theirs(cells), *_validators(cells)]
    for cause, read in DIMENSIONS.items():
        found += [
            Suspect(cause, value, _reads(read, value), is_new=True)
            for value in _values(cells, read)
            if is_new(_reads(read, value), cells, before, timing)
        ]
    sources = _values(cells, _source_of)
    found += [
        Suspect(Cause.RELEASE, source, _reads(_source_of, source))
        for source in sources
        if len(sources) > 1
    ]
    return found


def explain(suspect: Suspect, cells: Sequence[Cell], usual: Usual) -> Explained:
    """Weigh one suspect: a raised rate of its own for each model and kind it touches."""
    mine: _Groups = defaultdict(list)
    others: _Groups = defaultdict(list)
    excess = elsewhere = chance = 0.0
    models: set[tuple[str | None, str | None]] = set()
    for cell in cells:
        place, touched = cell.place, suspect.touches(cell.place)
        for kind in FAILURE_KINDS:
            failed, share = cell.failures.get(kind, 0), usual.share(place, kind)
            more = failed - cell.attempts * share
            is_mine = touched and kind in suspect.kinds
            groups = mine if is_mine else others
            groups[place.provider, place.model, kind].append(
                (cell.attempts, failed, share)
            )
            if is_mine:
                excess += more
                if failed:
                    models.add((place.provider, place.model))
            else:
                elsewhere += more
                chance += cell.attempts * share * (1 - share)
    return Explained(
        suspect,
        sum(_gain(group) for group in mine.values()),
        excess,
        len(models),
        max(0.0, elsewhere - sqrt(chance)),
        sum(_gain(group) for group in others.values()),
    )


_Groups = dict[tuple[str | None, str | None, str], list[tuple[int, int, float]]]


def _gain(group: Sequence[tuple[int, int, float]]) -> float:
    """Log likelihood ratio of one raised rate against the usual ones, less its cost."""
    calls = sum(attempts for attempts, _, _ in group)
    failed = sum(failed for _, failed, _ in group)
    expected = sum(attempts * share for attempts, _, share in group)
    if not calls or failed <= expected:
        return 0.0
    raised = min(failed / calls, HIGHEST_SHARE)
    gain = sum(
        bad * log(raised / share) + (attempts - bad) * log((1 - raised) / (1 - share))
        for attempts, bad, share in group
    )
    return max(0.0, gain - 0.5 * log(calls) - 1.0)


def _source_of(place: Place) -> str | None:
    return place.source


def _values(cells: Iterable[Cell], read: Callable[[Place], str | None]) -> list[str]:
    return sorted({value for cell in cells if (value := read(cell.place))})


def _theirs(cells: Sequence[Cell]) -> list[Suspect]:
    models = sorted({(c.place.provider or "", c.place.model or "") for c in cells})
    providers = sorted({provider for provider, _ in models} - {""})
    outages = [
        Suspect(
            Cause.PROVIDER_OUTAGE,
            provider,
            _reads(lambda place: place.provider, provider),
            TRANSPORT,
        )
        for provider in providers
    ]
    return outages + [
        Suspect(Cause.MODEL, _named(*model), _is_model(*model)) for model in models
    ]


def _validators(cells: Sequence[Cell]) -> list[Suspect]:
    """The checks of all answers, and those of each node's."""
    kinds = frozenset(FAILURE_KINDS) - TRANSPORT
    nodes = _values(cells, lambda place: place.node)
    each = nodes if len(nodes) > 1 else []
    return [
        Suspect(Cause.VALIDATOR, "", lambda _: True, kinds),
        *(
            Suspect(
                Cause.VALIDATOR, node, _reads(lambda place: place.node, node), kinds
            )
            for node in each
        ),
    ]


def _named(provider: str, model: str) -> str:
    return (
        f"{provider}/{model}" if provider and model else model or provider or "unknown"
    )


def _is_model(provider: str, model: str) -> Callable[[Place], bool]:
    return lambda place: (place.provider or "", place.model or "") == (provider, model)


def _reads(read: Callable[[Place], str | None], value: str) -> Callable[[Place], bool]:
    return lambda place: read(place) == value
