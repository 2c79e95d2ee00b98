"""The memory for bodies of requests: whoever holds the most of it is refused first."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

# What a request takes besides its body, so that empty requests are bounded as well.
REQUEST_BYTES = 32 << 10


class Holder(NamedTuple):
    """Who holds memory: a project and its key, or a network and its address."""

    group: str
    member: str


@dataclass(eq=False)
class HeldBody:
    """A body in memory; `refuse` ends its request, None once a thread works on it."""

    holder: Holder
    refuse: Callable[[], None] | None
    size: int = field(default=REQUEST_BYTES, init=False)


class BodyMemory:
    """Bodies up to a number of bytes.

    When a byte more is needed, requests are refused until it fits: the largest one of the
    member that holds most, within the group that holds most.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bodies: dict[HeldBody, None] = {}
        self.size = 0

    def add(self, body: HeldBody) -> None:
        self._bodies[body] = None
        self.size += body.size
        self._make_room()

    def grow(self, body: HeldBody, size: int) -> None:
        """Count more bytes of a body; a refused one is not counted any more."""
        if body in self._bodies:
            body.size += size
            self.size += size
            self._make_room()

    def remove(self, body: HeldBody) -> None:
        """Forget a body; no matter whether it was refused."""
        if body in self._bodies:
            del self._bodies[body]
            self.size -= body.size

    def _make_room(self) -> None:
        while self.size > self._limit and (body := _heaviest(self._bodies)) is not None:
            self.remove(body)
            if body.refuse is not None:
                body.refuse()


def _heaviest(bodies: Iterable[HeldBody]) -> HeldBody | None:
    """Return the body to refuse; None if threads work on all of them."""
    held = list(bodies)
    groups = Counter[str]()
    members = Counter[Holder]()
    for body in held:
        groups[body.holder.group] += body.size
        members[body.holder] += body.size

    def weight(body: HeldBody) -> tuple[int, str, int, str, int]:
        # The names keep groups and members of equal weight apart.
        group, member = body.holder
        return groups[group], group, members[body.holder], member, body.size

    return max((body for body in held if body.refuse is not None), key=weight, default=None)
