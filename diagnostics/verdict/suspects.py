"""Possible causes of an excess, and how well each explains the counts.

The hypothesis of a suspect: calls that it touches fail more than their baseline, all others
do not. Its weight is the log likelihood ratio of the counts, less a penalty for its parameters.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from math import log, sqrt
from typing import NamedTuple

from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import TRANSPORT, CountCell, Dimensions, FailureBaseline
from diagnostics.verdict.novelty import UNTIMED, Timing, is_new

HIGHEST_SHARE = 0.995
PART = 0.3
"""The share of the rise elsewhere that a part of the calls must have to count as hit."""
PART_OF_OUTAGE = 0.5
RISEN = 0.1
"""The share of the largest rise that another kind must have to count as risen."""


class Cause(StrEnum):
    """The cause of a degradation, as named in the API."""

    PROVIDER_OUTAGE = "provider_outage"
    MODEL = "model"
    PROMPT = "prompt"
    SCHEMA = "schema"
    RELEASE = "release"
    SOURCE = "source"
    PAIR = "pair"
    SERVED = "served"
    VALIDATOR = "validator"
    MIXED = "mixed"
    NOT_ENOUGH_DATA = "not_enough_data"


DIMENSIONS: Mapping[Cause, Callable[[Dimensions], str | None]] = {
    Cause.PROMPT: lambda place: place.prompt_version,
    Cause.SCHEMA: lambda place: _versioned_name(place.schema, place.schema_version),
    Cause.RELEASE: lambda place: _versioned_name(place.source, place.release),
    Cause.SERVED: lambda place: place.served,
}
"""The dimensions that can be new: our versions, and the answerer of a model."""


def source_of(place: Dimensions) -> str | None:
    return place.source


def _versioned_name(name: str | None, version: str | None) -> str | None:
    if version is None:
        return None
    return f"{name} {version}" if name else version


@dataclass(frozen=True, slots=True)
class Suspect:
    """One possible cause: which cells it touches, and which kinds of failure it makes."""

    cause: Cause
    value: str
    touches: Callable[[Dimensions], bool]
    kinds: frozenset[str] = frozenset(FAILURE_KINDS)
    is_new: bool = False
    node: str = ""
    """The only node of a model that it touches."""
    of: tuple["Suspect", ...] = ()
    """The two suspects of a pair."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How well a suspect explains the counts: the larger the weight, the better."""

    suspect: Suspect
    weight: float
    excess: float
    models: int
    elsewhere: float
    """The unexplained excess, beyond chance."""
    rest: float
    """The weight of the unexplained counts."""
    calls: int
    added: Mapping[str, float]
    """The share of calls that fail beyond the baseline, for each kind that rose."""

    @property
    def share(self) -> float:
        """The part of the excess that it explains."""
        return self.excess / (self.excess + self.elsewhere) if self.excess > 0 else 0.0


def suspects_of(
    cells: Sequence[CountCell], before: Sequence[CountCell], timing: Timing = UNTIMED
) -> list[Suspect]:
    """Return every possible cause in the cells."""
    suspects = [*_provider_suspects(cells), *_validators(cells)]
    for cause, read in DIMENSIONS.items():
        suspects += [
            Suspect(cause, value, _reads(read, value), is_new=True)
            for value in _values(cells, read)
            if is_new(_reads(read, value), cells, before, timing)
        ]
    sources = _values(cells, source_of)
    suspects += [
        Suspect(Cause.SOURCE, source, _reads(source_of, source))
        for source in sources
        if len(sources) > 1
    ]
    return suspects


def pairs_of(
    strongest: Sequence[Suspect],
    cells: Sequence[CountCell],
    before: Sequence[CountCell],
    timing: Timing,
) -> Iterator[Suspect]:
    """Yield each of these models paired with each source and each new version.

    A single model makes no pair, since all calls are its calls.
    """
    if len({(cell.place.provider, cell.place.model) for cell in cells}) < 2:
        return
    models = [suspect for suspect in strongest if suspect.cause is Cause.MODEL and not suspect.node]
    versions = [
        Suspect(cause, value, _reads(read, value), is_new=True)
        for cause, read in DIMENSIONS.items()
        for value in (_values(cells, read) if models and cause is not Cause.SERVED else ())
        if timing.first_call(_reads(read, value)) is not None
    ]
    sources = [suspect for suspect in strongest if suspect.cause is Cause.SOURCE]
    for model, suspect in product(models, (*versions, *sources)):
        touches = _both(suspect.touches, model.touches)
        if suspect.is_new and not is_new(touches, cells, before, timing):
            continue
        name = f"{suspect.value} with {model.value}"
        yield Suspect(Cause.PAIR, name, touches, is_new=suspect.is_new, of=(suspect, model))


def _both(
    first: Callable[[Dimensions], bool], second: Callable[[Dimensions], bool]
) -> Callable[[Dimensions], bool]:
    return lambda place: first(place) and second(place)


class EvidenceSums:
    """Observed and expected counts of each cell and kind, summed once for all suspects."""

    def __init__(self, entries: Sequence["_Entry"]) -> None:
        """Sum the cells."""
        self._cells = entries
        self._all = _add_up(self._cells, frozenset(FAILURE_KINDS))
        self._gains = {key: sums.gain for key, sums in self._all.items()}
        self._gain = sum(self._gains.values())
        self._excess = sum(sums.excess for sums in self._all.values())
        self._variance = sum(sums.variance for sums in self._all.values())

    @classmethod
    def of(cls, cells: Sequence[CountCell], baseline: FailureBaseline) -> "EvidenceSums":
        """Return the sums of cells against their baseline."""
        return cls(
            [
                (
                    cell.place,
                    {
                        kind: _sums_of(cell.attempts, cell.failures.get(kind, 0), share)
                        for kind, share in baseline.shares(cell.place, FAILURE_KINDS)
                    },
                )
                for cell in cells
            ]
        )

    def explain(self, suspect: Suspect) -> Explanation:
        """Return the explanation of a suspect: a raised rate for each model and kind it touches."""
        touched = [entry for entry in self._cells if suspect.touches(entry[0])]
        sums_by_key = _add_up(touched, suspect.kinds)
        excess = sum(sums.excess for sums in sums_by_key.values())
        chance = self._variance - sum(sums.variance for sums in sums_by_key.values())
        # Untouched cells keep their weight; of touched ones only the remainder counts.
        rest = self._gain + sum(
            self._all[key].less(sums).gain - self._gains[key] for key, sums in sums_by_key.items()
        )
        calls = sum(by_kind[FAILURE_KINDS[0]].calls for _, by_kind in touched)
        return Explanation(
            suspect,
            sum(sums.gain for sums in sums_by_key.values()),
            excess,
            len({key[:2] for key, sums in sums_by_key.items() if sums.failed}),
            max(0.0, self._excess - excess - sqrt(max(chance, 0.0))),
            max(0.0, rest),
            calls,
            _added(sums_by_key, calls),
        )

    def wellness(
        self, explanation: Explanation, touches: Callable[[Dimensions], bool], part: float = PART
    ) -> float:
        """Return the log likelihood ratio of calls at their baseline against a part of the rise."""
        log_ratio = 0.0
        sums: dict[str, list[float]] = {kind: [0.0, 0.0, 0.0] for kind in explanation.added}
        for place, by_kind in self._cells:
            if touches(place):
                for kind, totals in sums.items():
                    cell_sums = by_kind[kind]
                    totals[0] += cell_sums.failed
                    totals[1] += cell_sums.expected
                    totals[2] += cell_sums.calls * explanation.added[kind] * part
        for failed, expected, expected_more in sums.values():
            if expected_more:
                log_ratio += expected_more - failed * log(1 + expected_more / expected)
        return log_ratio

    def parts(
        self, read: Callable[[Dimensions], object], touches: Callable[[Dimensions], bool]
    ) -> list[Callable[[Dimensions], bool]]:
        """Return predicates that divide the touched calls by a dimension."""
        return [_part(read, value, touches) for value in self.values(read, touches)]

    def values(
        self, read: Callable[[Dimensions], object], touches: Callable[[Dimensions], bool]
    ) -> set[object]:
        """Return what the calls of a suspect have in a dimension."""
        return {read(place) for place, _ in self._cells if touches(place)}

    def are_the_same(
        self, first: Callable[[Dimensions], bool], second: Callable[[Dimensions], bool]
    ) -> bool:
        """Whether two suspects touch the same calls."""
        return all(first(place) == second(place) for place, _ in self._cells)

    def without(self, touches: Callable[[Dimensions], bool]) -> "EvidenceSums":
        """Return the sums of the calls that are not touched."""
        return EvidenceSums([entry for entry in self._cells if not touches(entry[0])])


def _part(
    read: Callable[[Dimensions], object], value: object, touches: Callable[[Dimensions], bool]
) -> Callable[[Dimensions], bool]:
    return lambda place: read(place) == value and touches(place)


def _added(sums_by_key: Mapping["_Key", "_Sums"], calls: int) -> dict[str, float]:
    excess_by_kind: dict[str, float] = defaultdict(float)
    for (*_, kind), sums in sums_by_key.items():
        excess_by_kind[kind] += sums.excess
    largest = max(excess_by_kind.values(), default=0.0)
    if largest <= 0 or not calls:
        return {}
    return {
        kind: excess / calls for kind, excess in excess_by_kind.items() if excess >= RISEN * largest
    }


class _Sums(NamedTuple):
    """Counts of calls and one kind of failure: observed, expected and their likelihood."""

    calls: int
    failed: int
    expected: float
    variance: float
    likelihood: float

    def plus(self, other: "_Sums") -> "_Sums":
        return _Sums(
            self.calls + other.calls,
            self.failed + other.failed,
            self.expected + other.expected,
            self.variance + other.variance,
            self.likelihood + other.likelihood,
        )

    def less(self, other: "_Sums") -> "_Sums":
        return _Sums(
            self.calls - other.calls,
            self.failed - other.failed,
            self.expected - other.expected,
            self.variance - other.variance,
            self.likelihood - other.likelihood,
        )

    @property
    def excess(self) -> float:
        """Failures beyond what was expected."""
        return self.failed - self.expected

    @property
    def gain(self) -> float:
        """Log likelihood ratio of one raised rate against the baseline, less a penalty."""
        if self.calls <= 0 or self.excess <= 0:
            return 0.0
        raised = min(self.failed / self.calls, HIGHEST_SHARE)
        succeeded = self.calls - self.failed
        raised_likelihood = self.failed * log(raised) + succeeded * log(1 - raised)
        gain = raised_likelihood - self.likelihood
        return max(0.0, gain - 0.5 * log(self.calls) - 1.0)


_Entry = tuple[Dimensions, Mapping[str, _Sums]]
_Key = tuple[str | None, str | None, str]


def _sums_of(calls: int, failed: int, share: float) -> _Sums:
    expected = calls * share
    likelihood = failed * log(share) + (calls - failed) * log(1 - share)
    return _Sums(calls, failed, expected, expected * (1 - share), likelihood)


def _add_up(entries: Iterable[_Entry], kinds: frozenset[str]) -> dict[_Key, _Sums]:
    totals: dict[_Key, _Sums] = {}
    for place, by_kind in entries:
        for kind in kinds:
            key, sums = (place.provider, place.model, kind), by_kind[kind]
            known = totals.get(key)
            totals[key] = sums if known is None else known.plus(sums)
    return totals


def _values(cells: Iterable[CountCell], read: Callable[[Dimensions], str | None]) -> list[str]:
    return sorted({value for cell in cells if (value := read(cell.place))})


def _provider_suspects(cells: Sequence[CountCell]) -> list[Suspect]:
    models = sorted({(cell.place.provider or "", cell.place.model or "") for cell in cells})
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
    return [
        *outages,
        *(Suspect(Cause.MODEL, _model_name(*model), _is_model(*model)) for model in models),
        *_at_nodes(cells),
    ]


def _at_nodes(cells: Sequence[CountCell]) -> Iterator[Suspect]:
    """Yield each model at each of its nodes if it has several."""
    nodes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cell in cells:
        nodes[cell.place.provider or "", cell.place.model or ""].add(cell.place.node)
    for model, called in sorted(nodes.items()):
        for node in sorted(called) if len(called) > 1 else ():
            yield Suspect(Cause.MODEL, _model_name(*model), _is_model(*model, node), node=node)


def _validators(cells: Sequence[CountCell]) -> list[Suspect]:
    """Yield the validator of all nodes, and that of each node."""
    kinds = frozenset(FAILURE_KINDS) - TRANSPORT
    nodes = _values(cells, lambda place: place.node)
    each = nodes if len(nodes) > 1 else []
    return [
        Suspect(Cause.VALIDATOR, "", lambda _: True, kinds),
        *(
            Suspect(Cause.VALIDATOR, node, _reads(lambda place: place.node, node), kinds)
            for node in each
        ),
    ]


def _model_name(provider: str, model: str) -> str:
    return f"{provider}/{model}" if provider and model else model or provider or "unknown"


def _is_model(provider: str, model: str, node: str | None = None) -> Callable[[Dimensions], bool]:
    return lambda place: (
        (place.provider or "", place.model or "") == (provider, model)
        and (node is None or place.node == node)
    )


def _reads(read: Callable[[Dimensions], str | None], value: str) -> Callable[[Dimensions], bool]:
    return lambda place: read(place) == value
