"""Format and parse figures: units, spaces, signs, digits, times in a named zone; tones."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Literal

Tone = Literal["good", "warn", "bad", "quiet", "live"]
"""How a state is shown."""
THIN = "\N{NARROW NO-BREAK SPACE}"
DASH = "\N{EN DASH}"
ONE_LINE: dict[int, str | None] = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " "),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A))),
}
"""For `str.translate`: no control characters, line ends, or turns of the writing direction."""
MINUS = "\N{MINUS SIGN}"
TENTH = 0.1
CENT = Decimal("0.01")
SMALLEST = Decimal("0.0001")


def read_number(text: str | None, most_digits: int = 18) -> int | None:
    """Return the whole number in a text; None for any other text."""
    is_number = text is not None and text.isascii() and text.isdigit()
    return int(text) if text and is_number and len(text) <= most_digits else None


def percent(share: float | None, digits: int = 1) -> str:
    """Format a share of 0 to 1 as a percentage; a dash for None."""
    return DASH if share is None else f"{share * 100:.{digits}f}{THIN}%"


def rate_percent(share: float | None) -> str:
    """Format the rate of a verdict: with tenths only below 10 %."""
    return percent(share, 0 if share is not None and share >= TENTH else 1)


def points(share: float | None) -> str:
    """Format a difference of two shares in percentage points, always signed."""
    if share is None:
        return DASH
    value = round(share * 100, 1)
    sign = MINUS if value < 0 else "+" if value > 0 else "±"
    return f"{sign}{abs(value):.1f}{THIN}pt"


def count(value: int | None) -> str:
    """Format a count with separators of thousands; a dash for None."""
    return DASH if value is None else f"{value:,}"


def short_count(value: int | None) -> str:
    """Format a large count with two or three digits and k, M or G."""
    if value is None:
        return DASH
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{THIN}{unit}" if scaled < 10 else f"{scaled:.0f}{THIN}{unit}"
    return str(value)


def duration(seconds: float | timedelta | None) -> str:
    """Format a duration in at most two units: 840 ms, 4.2 s, 2 h 10 min."""
    if seconds is None:
        return DASH
    value = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    if value < 1:
        return f"{value * 1000:.0f}{THIN}ms" if value else f"0{THIN}s"
    if value < 60:
        return f"{value:.1f}{THIN}s"
    return _two_units(round(value))


def _two_units(seconds: int) -> str:
    for size, unit, smaller, small_unit in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size}{THIN}{unit}" + (f" {rest}{THIN}{small_unit}" if rest else "")
    return f"{seconds}{THIN}s"


def shorten(text: str, most: int) -> str:
    """Shorten a name from outside in its middle: both ends distinguish names.

    Line ends and bidirectional control characters would affect the rest of the sentence.
    """
    text = text.translate(ONE_LINE)
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[head + 1 - most :]}"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def all_of(number: int) -> str:
    return "both" if number == 2 else f"all {number:,}"


def listed(names: Sequence[str], most: int) -> str:
    """Format the first names, and how many more there are; names may contain commas."""
    more, mark = len(names) - most, "; " if any(", " in name for name in names) else ", "
    return mark.join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def write_usd(amount: Decimal | None) -> str:
    """Format an amount of US dollars: with cents from a dollar on, finer below."""
    if amount is None:
        return "\N{EN DASH}"
    if amount >= 1 or not amount:
        return f"${amount.quantize(CENT):,}"
    if amount < SMALLEST:
        return f"< ${SMALLEST}"
    fine = amount.quantize(SMALLEST)
    if amount < CENT:
        # A column of these reads as one: $0.0010 below $0.0026.
        return f"${fine:f}"
    fine = fine.normalize()
    return f"${max(fine, amount.quantize(CENT), key=_decimals):f}"


def _decimals(amount: Decimal) -> int:
    return -int(amount.as_tuple().exponent)


FORMATS = {
    "clock": "%H:%M:%S",
    "minute": "%H:%M",
    "day": "%-d %b %H:%M",
    "date": "%-d %b %Y %H:%M",
    "full": "%Y-%m-%d %H:%M:%S",
}


def write_moment(
    at: datetime, form: str = "date", zone: tzinfo = UTC, now: datetime | None = None
) -> str:
    """Format a time in a zone, with the zone's name: `22 Nov 2026 20:40 Europe/Berlin`.

    `lately` includes the day only if it is not that of `now`; `ago` is the same.
    """
    local = at.astimezone(zone)
    if form in ("lately", "ago"):
        is_today = now is not None and local.date() == now.astimezone(zone).date()
        form = "minute" if is_today else "day"
    return f"{local.strftime(FORMATS[form])} {zone}"
