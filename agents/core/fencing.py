"""Text of others inside a prompt: bounded, fenced, and never read as a template."""

import re

_TICKS = re.compile(r"`+")


def fenced(text: str, limit: int) -> str:
    """Put text between fences longer than any in it, cut to `limit` characters."""
    kept = text if len(text) <= limit else f"{text[:limit]}\n[cut, {len(text)} characters in all]"
    longest = max((len(run) for run in _TICKS.findall(kept)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{kept}\n{fence}"


def one_line(text: str, limit: int) -> str:
    """Text on one line, cut to `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."
