"""The key of a provider: a reference, read when it is needed (S26)."""

from agents.providers.base import RefusedCallError
from diagnostics.outbound import credentials


class CredentialError(RefusedCallError):
    """the credential of a provider cannot be read; the message names the reference"""


def read_credential(reference: str) -> str | None:
    """Return the value behind a reference and have it masked everywhere; None for no reference."""
    if not reference:
        return None
    try:
        return credentials.read_credential(reference, "provider_key")
    except credentials.CredentialError as error:
        raise CredentialError(str(error)) from None
