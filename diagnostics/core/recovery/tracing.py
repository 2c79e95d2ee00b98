"""Where keys and values of a recovered value stand in the text it was read from."""

from collections.abc import Callable, Sequence
from typing import Any


class Trace:
    """The offsets of every container, key and value; lives as long as the value it describes."""

    def __init__(self) -> None:
        """Begin with nothing remembered."""
        self.root: Any = None
        self._starts: dict[int, int] = {}
        self._places: dict[int, dict[Any, tuple[int, int]]] = {}
        self._moves: list[Callable[[int], int]] = []

    def remember(self, container: object, at: int, places: dict[Any, tuple[int, int]]) -> None:
        """Remember where a container begins, and for each key or index (key, value) offsets."""
        self._starts[id(container)] = at
        self._places[id(container)] = places

    def move(self, moved: Callable[[int], int]) -> None:
        """Map every offset once more: the text stood inside another one."""
        self._moves.append(moved)

    def value_at(self, path: Sequence[Any]) -> int:
        """Offset of the value at `path`; of the nearest container when it is not there."""
        return self._find(path, part=1)

    def key_at(self, path: Sequence[Any]) -> int:
        """Offset of the key that ends `path`; of the element itself in an array."""
        return self._find(path, part=0)

    def pointed(self, pointer: str, *, key: bool = False) -> int:
        """Offset of the value, or the key, at a JSON pointer; of the nearest one around it."""
        path: list[Any] = []
        here = self.root
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            segment = int(name) if isinstance(here, list) and name.isdecimal() else name
            path.append(segment)
            inside = isinstance(here, dict | list) and segment in self._places.get(id(here), {})
            here = here[segment] if inside else None
        return self.key_at(path) if key else self.value_at(path)

    def last_before(self, offset: int) -> int:
        """Offset of the key or value of the root that `offset` is part of."""
        starts = {0: self._starts.get(id(self.root), 0)}
        starts |= {start: start for places in self._places.values() for pair in places.values()
                   for start in pair}  # fmt: skip
        return max(item for item in map(self._outside, starts.values()) if item <= offset)

    def _outside(self, offset: int) -> int:
        for moved in self._moves:
            offset = moved(offset)
        return offset

    def _find(self, path: Sequence[Any], part: int) -> int:
        here = self.root
        offset = self._starts.get(id(here), 0)
        for number, segment in enumerate(path):
            places = self._places.get(id(here), {})
            if segment not in places:
                break
            offset = places[segment][part if number == len(path) - 1 else 1]
            here = here[segment]
        return self._outside(offset)
