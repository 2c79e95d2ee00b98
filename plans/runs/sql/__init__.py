"""Plain SQL of runs, one statement a file, read once."""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@cache
def statement(name: str) -> str:
    """Read `<name>.sql`."""
    return (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
