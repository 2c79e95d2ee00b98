"""A time as it is posted: RFC 3339 with an offset, never a bare number."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

EARLIEST_YEAR = 1970
LATEST_YEAR = 2200
WRITTEN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:")


def require_written(value: object) -> object:
    """Refuse times given as bare numbers: the unit would be a guess."""
    if isinstance(value, datetime) or (isinstance(value, str) and WRITTEN_TIME.match(value)):
        return value
    raise PydanticCustomError("time_text", "an RFC 3339 time with offset is required")


def require_plausible(value: datetime) -> datetime:
    """Give the time in UTC; refuse years that no clock shows."""
    if EARLIEST_YEAR < value.year < LATEST_YEAR:
        return value.astimezone(UTC)
    raise PydanticCustomError("time_range", "the time must lie between 1971 and 2199")


PlausibleTime = Annotated[
    AwareDatetime, BeforeValidator(require_written), AfterValidator(require_plausible)
]
