"""The ledger of repairs: what was put right, where, and whether anything was lost (X-12)."""

from collections.abc import Callable

from pydantic import TypeAdapter

from diagnostics.core.events import MAX_ERRORS, Repair
from diagnostics.core.recovery.faults import Fault
from diagnostics.core.recovery.places import Lines

# Something the model wrote is not in the value.
LOSSY = frozenset({"comment", "prose", "think_block", "tail_cut", "surplus_closer"})
# Found around the root value, not inside it.
AROUND = frozenset(
    {
        "fence",
        "prose",
        "think_block",
        "tag",
        "wrapper",
        "block_quote",
        "byte_order_mark",
    }
    | {"repeated_answer", "quoted_answer"}
)
MORE = "more_repairs"
# One call for all rows: many small models cost more than reading the text.
_REPAIRS: TypeAdapter[tuple[Repair, ...]] = TypeAdapter(tuple[Repair, ...])


class Ledger:
    """Repairs in the order of the text; the same finding counts once however often it is met."""

    def __init__(self) -> None:
        """Begin with nothing repaired."""
        self._found: dict[tuple[int, str], None] = {}
        # The token that made it necessary to put in a closer.
        self.blame: int | None = None

    def note(self, offset: int, kind: str) -> None:
        """Write down one repair of `kind` at `offset`."""
        self._found[offset, kind] = None

    def has(self, *kinds: str) -> bool:
        """Whether a repair of one of these kinds was made."""
        return any(kind in kinds for _, kind in self._found)

    def first(self, *kinds: str) -> int | None:
        """Offset of the first repair of one of these kinds."""
        return min((offset for offset, name in self._found if name in kinds), default=None)

    def blamed(self, fault: Fault) -> Fault:
        """Tell a fault behind a closer that was put in at the token that made it necessary."""
        if self.blame is None or fault.offset <= self.blame:
            return fault
        return fault.moved_to(self.blame)

    def take_over(self, other: "Ledger", moved: Callable[[int], int]) -> None:
        """Take over the repairs of a text inside this one."""
        self.blame = None if other.blame is None else moved(other.blame)
        for offset, kind in other._found:
            self.note(moved(offset), kind)

    def touches_root(self) -> bool:
        """Whether the root value itself was repaired, not only what stands around it."""
        return any(kind not in AROUND for _, kind in self._found)

    def repairs(self, text: str) -> tuple[Repair, ...]:
        """Place every repair; past the bound of an event the last one stands for the rest."""
        found, lines = sorted(self._found), Lines(text)
        kept = found if len(found) <= MAX_ERRORS else found[: MAX_ERRORS - 1]
        placed = [_row(lines, offset, kind) for offset, kind in kept]
        rest = found[len(kept) :]
        if rest:
            row = _row(lines, rest[0][0], MORE)
            row["lossless"] = all(kind not in LOSSY for _, kind in rest)
            placed.append(row)
        return _REPAIRS.validate_python(placed)


def _row(lines: Lines, offset: int, kind: str) -> dict[str, object]:
    line, column = lines.place(offset)
    return {"kind": kind, "line": line, "column": column, "lossless": kind not in LOSSY}
