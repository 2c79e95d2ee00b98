"""Plain SQL, one statement a file, read once."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from diagnostics.store.event_counts import BITS, PACKED, PLACES, WORDS
from diagnostics.store.rollups import MEASURES, PLAIN, SUMS

# Each feature keeps its statements in a folder of its own; a name is given once.
FILES = {path.stem: path for path in Path(__file__).parents[2].glob("*/sql/*.sql")}
# A count is an integer: far more than anybody sends, yet nobody may stop the fold.
MOST = 2_147_483_647
FAILURES = "<<failures>>"


@cache
def statement(name: str, without: str = "") -> str:
    """Read `<name>.sql`; `<<columns>>` and its like stand for the measures of a rollup.

    The part that the mark `without` stands for is left out.
    """
    text = FILES[name].read_text(encoding="utf-8").replace(without, "")
    for mark, write in MARKS.items():
        if mark in text:
            text = text.replace(mark, write())
    return text


def _read(name: str) -> str:
    return FILES[name].read_text(encoding="utf-8").strip()


def _read_failures() -> str:
    return _read("record_failures")


def _read_measures() -> str:
    return _read("measures").replace("<<sums>>", _read("sums_of_events"))


def _words() -> str:
    return ", ".join(f"w{word} bigint" for word in range(WORDS))


def _packed() -> str:
    """Add up the words of events, and their tokens and milliseconds."""
    words = [f"coalesce(sum(w{word}), 0)::bigint AS w{word}" for word in range(WORDS)]
    sums = _read("sums_of_events").split(",\n")
    named = [f"{text.strip()} AS {name}" for text, name in zip(sums, SUMS, strict=True)]
    return ", ".join([*words, *named])


def _unpacked() -> str:
    return ", ".join([*map(_field_of, PACKED), *SUMS])


def _field_of(name: str) -> str:
    word, place = PLACES[name]
    field = f"(w{word} >> {BITS * place} & {2**BITS - 1})::integer"
    return field if name in PLAIN else f"nullif({field}, 0)"


def _columns() -> str:
    return ", ".join(MEASURES)


def _summed() -> str:
    return ", ".join(_total_of(name) for name in MEASURES)


def _total_of(name: str) -> str:
    if name in SUMS:
        return f"sum({name})::bigint"
    # `least` passes over nulls: without any count it would give the bound itself.
    total = f"least(coalesce(sum({name}), 0), {MOST})"
    return total if name in PLAIN else f"nullif({total}, 0)"


def _added() -> str:
    return ", ".join(f"{name} = {_sum_of(name)}" for name in MEASURES)


def _sum_of(name: str) -> str:
    if name in PLAIN:
        return f"least(kept.{name}::bigint + excluded.{name}, {MOST})"
    total = f"coalesce(kept.{name}, 0)::bigint + coalesce(excluded.{name}, 0)"
    return f"nullif({total if name in SUMS else f'least({total}, {MOST})'}, 0)"


def _totalled() -> str:
    return ", ".join(
        f"{name} = coalesce(kept.{name}, 0) + coalesce(excluded.{name}, 0)" for name in MEASURES
    )


def _totals() -> str:
    return ", ".join(f"total.{name}" for name in MEASURES)


def _totalled_sums() -> str:
    sums = (f"coalesce(sum({name}), 0)::bigint AS {name}" for name in MEASURES)
    return ", ".join(sums)


def _negated() -> str:
    return ", ".join(f"-{name}" for name in MEASURES)


MARKS: Mapping[str, Callable[[], str]] = {
    FAILURES: _read_failures,
    "<<measures>>": _read_measures,
    "<<words>>": _words,
    "<<packed>>": _packed,
    "<<unpacked>>": _unpacked,
    "<<columns>>": _columns,
    "<<summed>>": _summed,
    "<<added>>": _added,
    "<<totalled>>": _totalled,
    "<<totals>>": _totals,
    "<<totalled_sums>>": _totalled_sums,
    "<<negated>>": _negated,
}
