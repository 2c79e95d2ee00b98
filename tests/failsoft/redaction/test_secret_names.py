"""Names whose values are secrets are told from names that only sound so."""

import pytest

from failsoft.redaction.secret_names import is_secret_name

SECRET = (
    "password", "DB_PASSWORD", "apiKey", "api-key", "X-Api-Key", "client_secret",
    "accessToken", "token", "Authorization", "set-cookie", "privateKey", "passphrase",
    "aws_secret_access_key", "credentials", "userPassword2", "sessionid", "dsn",
)  # fmt: skip
PLAIN = (
    "max_tokens", "input_tokens", "token_count", "key", "keyboard", "monkey", "secretary",
    "path", "tool", "model", "passenger", "cookie_policy", "author", "password_length", "",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_a_secret_name_is_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_name_is_left_alone(name: str) -> None:
    assert not is_secret_name(name)
