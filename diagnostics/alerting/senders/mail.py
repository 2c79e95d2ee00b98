"""Notifications by e-mail: one message to all addresses of the channel."""

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.smtp import EmailBackend

from diagnostics.alerting.ack_links import acknowledge_url
from diagnostics.alerting.channels import split_addresses
from diagnostics.alerting.incident_facts import read_facts
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.notification_wording import lead_of, story_of, subject_of
from diagnostics.alerting.senders.faults import SendError, Sending
from diagnostics.outbound.mail import compose, make_message_id

SERVICE_UNAVAILABLE = 421


def prepare_mail(row: Notification) -> Sending:
    """Write the mail, with a Message-ID that is the same at every try."""
    facts = read_facts(row)
    headers = {"Message-ID": make_message_id(str(row.key))}
    if row.incident_id is not None:
        # Mail programs put all mails of an incident into one thread.
        thread = make_message_id(f"incident-{row.incident_id}")
        headers |= {"References": thread, "In-Reply-To": thread}
    context = {
        "facts": facts,
        "lead": lead_of(facts),
        "story": story_of(facts),
        "project": facts.project,
        "link": settings.FAILSOFT_BASE_URL + facts.path if facts.path else "",
        "acknowledge": acknowledge_url(row),
        "channel": row.channel.name,
    }
    to = split_addresses(row.channel.shown)
    message = compose(subject_of(facts), "alert", context, to, headers)
    return partial(send_message, message)


def send_message(message: EmailMessage) -> str:
    """Hand it to the mail server."""
    with _told_as_send_errors():
        message.send()
    return f"accepted by SMTP server for {', '.join(message.to)}"


def probe_mail() -> bool:
    """Whether the mail server takes connections again."""
    backend = get_connection()
    if not isinstance(backend, EmailBackend):
        return True
    try:
        backend.open()
    except (OSError, smtplib.SMTPException):
        return False
    with suppress(OSError, smtplib.SMTPException):
        backend.close()
    return True


@contextmanager
def _told_as_send_errors() -> Iterator[None]:
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        words = "; ".join(
            f"{code} {text.decode('utf-8', 'replace')}" for code, text in error.recipients.values()
        )
        raise SendError(f"all addresses were refused: {words}") from None
    except smtplib.SMTPResponseException as error:
        gone = error.smtp_code == SERVICE_UNAVAILABLE
        told = error.smtp_error
        text = told.decode("utf-8", "replace") if isinstance(told, bytes) else told
        raise SendError(f"{error.smtp_code} {text}", unreachable=gone) from None
    except smtplib.SMTPServerDisconnected as error:
        raise SendError(str(error), unreachable=True) from None
    except smtplib.SMTPException as error:
        raise SendError(f"{type(error).__name__}: {error}") from None
    except OSError as error:
        words = f"the mail server cannot be reached: {error}"
        raise SendError(words, unreachable=True) from None
