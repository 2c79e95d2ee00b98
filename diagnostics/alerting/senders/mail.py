"""Notifications by e-mail: one message to all addresses of the channel that wait for it."""

import smtplib
from contextlib import suppress
from functools import partial

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.smtp import EmailBackend
from django.db.models import QuerySet

from diagnostics.alerting.channels import split_addresses
from diagnostics.alerting.notification_facts import headline_of, lead_of, story_of, subject_of
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.senders import (
    ACCEPTED,
    Receipts,
    SendError,
    Sending,
    accepted,
    receipt_words,
    waiting,
)
from diagnostics.alerting.senders.messages import acknowledge_url, read_facts
from diagnostics.outbound.mail import compose, make_message_id, unsent_words
from diagnostics.outbound.mail_headers import LONGEST_SUBJECT, clean_header
from diagnostics.outbound.smtp import SomeRecipientsRefused, answers_of, reply_words

UNAVAILABLE = 421
REPLY = "Re: "
NOT_YET = "an earlier message of the incident comes first"


def prepare_mail(row: Notification) -> Sending:
    """Write the mail, with a Message-ID that is the same at every try."""
    facts = read_facts(row)
    subject, thread = _threaded(row, subject_of(facts))
    headers = {"Message-ID": make_message_id(str(row.key)), **thread}
    context = {
        "facts": facts,
        "headline": headline_of(facts),
        "lead": lead_of(facts),
        "story": story_of(facts),
        "project": facts.project,
        "link": settings.FAILSOFT_BASE_URL + facts.path if facts.path else "",
        "acknowledge": acknowledge_url(row),
        "channel": row.channel.name,
    }
    known = {to: row.receipts.get(to, "") for to in split_addresses(row.channel.shown)}
    queued = _earlier(row).filter(state=Notification.State.QUEUED)
    before = queued.values_list("receipts", flat=True)
    # They get an earlier message of the incident first.
    late = {address for receipts in before for address in waiting(receipts)} & set(waiting(known))
    to = [address for address in waiting(known) if address not in late]
    message = compose(subject, "alert", context, to, headers)
    return partial(send_message, message, known | dict.fromkeys(late, NOT_YET))


def send_message(message: EmailMessage, before: Receipts) -> str:
    """Hand it to the mail server; SendError unless all addresses have it then.

    `before` names all addresses, with the answers of earlier tries.
    """
    receipts = {**before, **_send(message)}
    words = receipt_words(receipts)
    if len(accepted(receipts)) == len(receipts):
        return unsent_words() or words
    is_leaving = any(answer.startswith(str(UNAVAILABLE)) for answer in receipts.values())
    raise SendError(words, unreachable=is_leaving, receipts=receipts)


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


def _threaded(row: Notification, headline: str) -> tuple[str, dict[str, str]]:
    """Return subject and headers of a mail: an answer to the first one about its incident.

    Some mail programs make a thread by these headers, some by the subject.
    """
    longest = LONGEST_SUBJECT - len(REPLY)
    sent = _earlier(row).filter(sent_at__isnull=False)
    first = sent.select_related("channel").order_by("pk").first()
    if first is None:
        return clean_header(headline, longest), {}
    begun_by = make_message_id(str(first.key))
    subject = REPLY + clean_header(subject_of(read_facts(first)), longest)
    return subject, {"In-Reply-To": begun_by, "References": begun_by}


def _earlier(row: Notification) -> QuerySet[Notification]:
    """Return what the channel was sent of the same incident before."""
    if row.incident_id is None:
        return Notification.objects.none()
    return Notification.objects.filter(
        incident_id=row.incident_id, channel_id=row.channel_id, pk__lt=row.pk
    )


def _send(message: EmailMessage) -> Receipts:
    """Return the answer for each address that there was one for. SendError if for none."""
    try:
        message.send()
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPDataError) as error:
        taken = message.to if isinstance(error, SomeRecipientsRefused) else []
        return {**dict.fromkeys(taken, ACCEPTED), **answers_of(error, message.to)}
    except smtplib.SMTPResponseException as error:
        gone = error.smtp_code == UNAVAILABLE
        words = reply_words(error.smtp_code, error.smtp_error)
        raise SendError(words, unreachable=gone) from None
    except smtplib.SMTPServerDisconnected as error:
        raise SendError(str(error), unreachable=True) from None
    except smtplib.SMTPException as error:
        raise SendError(f"{type(error).__name__}: {error}") from None
    except OSError as error:
        words = f"the mail server cannot be reached: {error}"
        raise SendError(words, unreachable=True) from None
    return dict.fromkeys(message.to, ACCEPTED)
