"""The mail server and the sender, as administrators write them."""

from email import message_from_bytes, policy

import pytest
from django.core.mail import EmailMessage
from django.core.mail.message import sanitize_address

from config.mail import mail_settings, quote_sender


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("smtp://mail.example.org", 25),
        ("smtp+tls://u:p@mail.example.org", 587),
        ("smtps://u:p@mail.example.org", 465),
        ("smtps://u:p@mail.example.org:8465", 8465),
    ],
)
def test_each_way_of_tls_has_its_usual_port(url: str, port: int) -> None:
    assert mail_settings(url)["EMAIL_PORT"] == port


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        ("alerts@example.org", ""),
        ("<alerts@example.org>", ""),
        ("Failsoft <alerts@example.org>", "Failsoft"),
        ("Failsoft, Inc. <alerts@example.org>", "Failsoft, Inc."),
        ('"Failsoft, Inc." <alerts@example.org>', "Failsoft, Inc."),
        ("Müller: Betrieb <alerts@example.org>", "Müller: Betrieb"),
        ("Betrieb Müller <alerts@müller.example>", "Betrieb Müller"),
    ],
)
def test_a_name_with_commas_or_umlauts_is_one_sender(sender: str, name: str) -> None:
    sender = quote_sender(sender)
    mail = EmailMessage("s", "b", sender, ["ops@example.org"]).message()
    (read,) = message_from_bytes(mail.as_bytes(), policy=policy.default)["From"].addresses
    assert (read.display_name, read.username) == (name, "alerts")
    # The envelope takes it, too.
    assert sanitize_address(sender, "utf-8").isascii()
