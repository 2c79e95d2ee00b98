"""When nobody is to be told: silences, each for a stretch of time."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from diagnostics.alerting.signals import Slice
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import keeps_all


@dataclass(frozen=True, slots=True)
class ActiveSilence:
    """A stretch of time in which slices that meet the terms tell nobody.

    `rule` is the id of the only rule it is for; None: all rules.
    """

    starts_at: datetime
    ends_at: datetime
    terms: tuple[Term, ...] = ()
    rule: int | None = None

    def is_on(self, now: datetime) -> bool:
        """Whether a time lies in it."""
        return self.starts_at <= now < self.ends_at

    def covers(self, rule: int, values: Slice, kinds: Collection[str] = ()) -> bool:
        """Whether it is about a slice: the slice has every value that it names.

        `kinds` are the kinds of failure that the slice fires for, as filters name them. One
        that it does not name keeps the slice loud; so do kinds that are not known.
        """
        if self.rule is not None and self.rule != rule:
            return False
        of_kind = [term for term in self.terms if term.field == "kind"]
        others = [term for term in self.terms if term.field != "kind"]
        if of_kind and not (kinds and all(keeps_all(of_kind, {"kind": one}) for one in kinds)):
            return False
        return all(term.field in values for term in others) and keeps_all(others, dict(values))


def is_silenced(
    stretches: Iterable[ActiveSilence],
    now: datetime,
    rule: int,
    values: Slice,
    kinds: Collection[str] = (),
) -> bool:
    """Whether anything keeps a slice quiet now."""
    return any(one.is_on(now) and one.covers(rule, values, kinds) for one in stretches)
