"""Signals that are no sums of rollups: each is read by a source of its own.

Apps above this one add theirs (`add_source`), as breakers do.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Sum

from diagnostics.alerting.rules import MONEY_UNITS
from diagnostics.alerting.signals import Signal, Slice
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.ingest.models import KeyMinute
from diagnostics.ingest.sources import LOOKED_AT, sources_of
from diagnostics.prices.models import prices_of
from diagnostics.prices.prices import retry_spend
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import keeps_all
from diagnostics.store.windows import Grain, align_to

Found = tuple[Slice, int]
"""The values of a slice and its number: so many, or seconds of silence."""


class SourceQuestion(NamedTuple):
    """What of a project a source counts: since <= t <= until, under the terms of a rule."""

    project_id: int
    since: datetime
    until: datetime
    terms: Sequence[Term] = ()

    @property
    def times(self) -> tuple[datetime, datetime]:
        return self.since, self.until


Source = Callable[[SourceQuestion], Iterable[Found]]


def _groups_that_began(asked: SourceQuestion) -> list[Found]:
    groups = FailureGroup.objects.filter(project_id=asked.project_id, first_seen__range=asked.times)
    return [({}, _count_nodes(groups.values_list("node"), asked.terms))]


def _groups_that_came_back(asked: SourceQuestion) -> list[Found]:
    regressed = GroupChange.objects.filter(kind=GroupChange.Kind.REGRESSED, at__range=asked.times)
    changes = regressed.filter(group__project_id=asked.project_id)
    return [({}, _count_nodes(changes.values_list("group__node"), asked.terms))]


def _count_nodes(nodes: Iterable[tuple[str]], terms: Sequence[Term]) -> int:
    """Groups are told apart by their node: other terms say nothing about them."""
    return sum(keeps_all(terms, {"node": node}) for (node,) in nodes)


def _rejects(asked: SourceQuestion) -> list[Found]:
    minutes = KeyMinute.objects.filter(project_id=asked.project_id, minute__range=asked.times)
    refused = minutes.aggregate(invalid=Sum("invalid"), rejected=Sum("rejected"))
    return [({}, (refused["invalid"] or 0) + (refused["rejected"] or 0))]


def _silent_sources(asked: SourceQuestion) -> list[Found]:
    """Tell how long each source of a week, or what the rule waits, sent nothing, in hours."""
    span = max(LOOKED_AT, asked.until - asked.since + timedelta(days=1))
    return [
        ({"source": source.name}, max(0, int((asked.until - source.last_hour).total_seconds())))
        for source in sources_of(asked.project_id, asked.until, span)
        if keeps_all(asked.terms, {"source": source.name})
    ]


def _retry_money(asked: SourceQuestion) -> list[Found]:
    """Tell what retries of each model cost, in millionths of a dollar, where priced."""
    window = align_to(Grain.MINUTE, *asked.times)
    spent = retry_spend(asked.project_id, prices_of(asked.project_id), window, asked.terms)
    return [
        ({"provider": provider, "model": model}, int(counts.money_usd * MONEY_UNITS))
        for (provider, model), counts in spent.items()
        if counts.money_usd is not None
    ]


_sources: dict[Signal, Source] = {
    Signal.NEW_GROUP: _groups_that_began,
    Signal.REGRESSED_GROUP: _groups_that_came_back,
    Signal.INGEST_REJECTS: _rejects,
    Signal.RETRY_MONEY: _retry_money,
    Signal.SOURCE_SILENT: _silent_sources,
}


def add_source(signal: Signal, source: Source) -> None:
    """Let an app above tell what this one does not know."""
    _sources[signal] = source


def read_source(signal: Signal, asked: SourceQuestion) -> list[Found]:
    """Ask the source of a signal; one that nobody added finds nothing."""
    source = _sources.get(signal)
    return list(source(asked)) if source else []
