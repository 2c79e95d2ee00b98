"""Who did something by REST, as it is written down."""

from rest_framework.request import Request

from diagnostics.models import ApiKey


def actor_of(request: Request) -> str:
    """Name the key of an authenticated request, never its secret half."""
    key: ApiKey = request.auth  # type: ignore[assignment] # set by authenticate
    return f"key {key.name} ({key.key_id})"
