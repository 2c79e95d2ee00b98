"""Signatures: the reference library verifies ours."""

from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from diagnostics.alerting.channels import make_secret, sign, signed_headers

BODY = '{"a": "ä"}'.encode()


def test_the_example_of_the_standard() -> None:
    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    told = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert told == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_both_secrets_sign_while_one_is_replaced() -> None:
    old, new = (make_secret(bytes([number]) * 32) for number in (1, 2))
    seconds = int(datetime.now(UTC).timestamp())
    headers = dict(signed_headers([new, old], "id-1", seconds, BODY))
    for secret in (old, new):
        assert Webhook(secret).verify(BODY, headers) == {"a": "ä"}
    with pytest.raises(WebhookVerificationError):
        Webhook(make_secret(b"3" * 32)).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(BODY + b" ", headers)
