"""What a provider says beside its answer."""

from collections.abc import Mapping


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of `Retry-After`; None when it is absent or not a number of seconds."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    # A comparison is false for NaN; infinity is no time to wait either.
    return seconds if 0 <= seconds < float("inf") else None
