"""Keys as this process knows them: looked up at most every four seconds (S1 to S4).

A key that is revoked anywhere is refused everywhere within five seconds, at once where it
was revoked. Ids that are not known are asked for each time.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from diagnostics.clock import DatabaseNow
from diagnostics.models import ApiKey

KEEP_SECONDS = 4.0
MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key with its project and quota, and when that was so."""

    key: ApiKey
    asked_at: datetime
    read_at: float

    @property
    def is_fresh(self) -> bool:
        """Whether it need not be asked for again."""
        return monotonic() - self.read_at < KEEP_SECONDS

    @property
    def now(self) -> datetime:
        """The database's time, as far as it can be told without asking."""
        return self.asked_at + timedelta(seconds=monotonic() - self.read_at)

    @property
    def is_live(self) -> bool:
        """Whether it is neither revoked nor expired."""
        ends = self.key.expires_at
        return self.key.revoked_at is None and (ends is None or ends > self.now)


_known: dict[str, KnownKey] = {}


def look_up(key_id: str) -> tuple[KnownKey | None, bool]:
    """Give the key with this id, and whether the database was asked for it."""
    found = _known.get(key_id)
    if found is not None and found.is_fresh:
        return found, False
    fresh = _read(key_id)
    if fresh is None:
        _known.pop(key_id, None)
        return None, True
    if len(_known) >= MOST_KEYS:
        _known.clear()
    _known[key_id] = fresh
    return fresh, True


def forget(key_id: str) -> None:
    """Ask again for this key the next time: something about it was changed."""
    _known.pop(key_id, None)


def forget_all() -> None:
    """Ask again for every key: something about a project was changed."""
    _known.clear()


def _read(key_id: str) -> KnownKey | None:
    found = ApiKey.objects.select_related("project", "project__quota")
    key = found.annotate(asked_at=DatabaseNow()).filter(key_id=key_id).first()
    if key is None:
        return None
    asked_at: datetime = key.asked_at
    return KnownKey(key, asked_at, monotonic())
