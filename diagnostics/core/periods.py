"""Days and months as partitions: how they are named, and when they begin."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

NAME = re.compile(r"(?P<table>.+)_(?P<unit>[dm])(?P<digits>[0-9]{6,8})")


class Unit(StrEnum):
    """How much time a partition holds."""

    DAY = "d"
    MONTH = "m"


@dataclass(frozen=True, slots=True)
class Period:
    """One day or one month (UTC), named by its first day."""

    unit: Unit
    first: date

    @property
    def suffix(self) -> str:
        """The end of a partition's name: `d20261121` or `m202611`."""
        form = "%Y%m%d" if self.unit is Unit.DAY else "%Y%m"
        return f"{self.unit}{self.first:{form}}"

    @property
    def begin(self) -> datetime:
        """Its first moment."""
        return datetime.combine(self.first, time.min, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """The first moment after it."""
        return datetime.combine(self.next().first, time.min, tzinfo=UTC)

    def next(self) -> "Period":
        """The period after this one."""
        if self.unit is Unit.DAY:
            return Period(self.unit, self.first + timedelta(days=1))
        return period_of(self.unit, self.first.replace(day=28) + timedelta(days=4))


def period_of(unit: Unit, day: date) -> Period:
    """Give the period a day lies in."""
    return Period(unit, day if unit is Unit.DAY else day.replace(day=1))


def periods(unit: Unit, first: date, last: date) -> Iterator[Period]:
    """Give the periods from the one of `first` to the one of `last`."""
    period = period_of(unit, first)
    while period.first <= last:
        yield period
        period = period.next()


def read_name(name: str) -> tuple[str, Period] | None:
    """Tell table and period from a partition's name; None for any other name."""
    found = NAME.fullmatch(name)
    if found is None:
        return None
    digits = found["digits"] if found["unit"] == Unit.DAY else found["digits"] + "01"
    try:
        first = datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        return None
    return found["table"], Period(Unit(found["unit"]), first)
