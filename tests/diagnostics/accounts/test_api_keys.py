"""Keys are minted, split, hashed and compared."""

import pytest

from diagnostics.accounts.api_keys import Scope, allows, hash_secret, is_right_secret, parse_key
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key


@pytest.mark.django_db
def test_a_new_key_splits_into_what_is_stored(project: Project) -> None:
    issued = issue_key(project, "agent", [Scope.INGEST])
    presented = parse_key(issued.text)
    assert presented is not None
    key_id, secret = presented
    assert key_id == issued.row.key_id
    assert hash_secret(secret) == issued.row.secret_hash


@pytest.mark.parametrize("text", ["", "fs_", "fs_1_x", "FS_000102030405_" + "a" * 43, "é", "fs_\n"])
def test_other_texts_are_no_keys(text: str) -> None:
    assert parse_key(text) is None


def test_only_the_right_secret_of_a_known_key_is_right() -> None:
    stored = hash_secret("right")
    assert is_right_secret("right", stored)
    assert not is_right_secret("wrong", stored)
    assert not is_right_secret("right", None)


# granted, wanted, allowed
SCOPES = [
    ({"read"}, Scope.READ, True),
    ({"read"}, Scope.INGEST, False),
    ({"ingest", "read"}, Scope.INGEST, True),
    ({"admin"}, Scope.INGEST, True),
    ({"read"}, Scope.ADMIN, False),
    (set(), Scope.READ, False),
]


@pytest.mark.parametrize(("granted", "wanted", "allowed"), SCOPES)
def test_a_scope_allows_itself_and_admin_allows_all(
    granted: set[str], wanted: Scope, allowed: bool
) -> None:
    assert allows(frozenset(granted), wanted) is allowed
