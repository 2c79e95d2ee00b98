"""What a key's state is called."""

from datetime import datetime

from diagnostics.core.charts.mark import Tone
from diagnostics.models import ApiKey


def key_state(key: ApiKey, now: datetime) -> tuple[Tone, str]:
    """Say how a key stands, and how much that is to be worried about."""
    if key.revoked_at is not None:
        return "quiet", "revoked"
    if key.expires_at is not None and key.expires_at <= now:
        return "bad", "expired"
    return ("good", "live") if key.last_used_at else ("quiet", "never used")
