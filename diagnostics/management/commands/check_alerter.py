"""`manage.py check_alerter`: check alert delivery; for cron, on this host or another one."""

import json
from argparse import ArgumentParser
from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from diagnostics.alerting.dead_man import find_faults
from diagnostics.outbound.mail import own_headers
from diagnostics.outbound.mail_headers import clean_header, clean_subject
from diagnostics.outbound.smtp import SomeRecipientsRefused
from diagnostics.redaction.redactor import redact

LONGEST = 4_000


class Command(BaseCommand):
    """Exit 0 if alerting works, else 1 with every fault, and send a mail.

    The mail goes directly to FAILSOFT_ALERTER_MAIL, without a queue or a worker.
    """

    help = "Check that alert rules are evaluated and notifications delivered."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--no-mail", action="store_true", help="send no mail")

    def handle(self, *args: object, **options: Any) -> None:
        try:
            faults = find_faults()
        except DatabaseError as error:
            faults = [f"the database does not answer: {type(error).__name__}"]
        mailed = bool(faults) and not options["no_mail"] and _try_to_mail(faults)
        if options["json"]:
            result = {"ok": not faults, "faults": faults, "mailed": mailed}
            self.stdout.write(json.dumps(result))
        elif not faults:
            self.stdout.write("OK: alert rules are evaluated and notifications delivered")
        if faults:
            raise CommandError("; ".join(faults), returncode=1)


def _try_to_mail(faults: list[str]) -> bool:
    """Mail the faults; that a server or an address refuses the mail is one more of them."""
    try:
        to = clean_header(settings.FAILSOFT_ALERTER_MAIL)
        if not to:
            return False
        lines = [f"- {fault}" for fault in faults]
        text = redact("\n".join(["Alerting needs a look:", "", *lines]), LONGEST)
        message = EmailMessage(
            subject=clean_subject(f"Alerting does not work: {redact(faults[0])}"),
            body=f"{text}\n\n{settings.FAILSOFT_BASE_URL}/alerts/channels/\n",
            to=[part.strip() for part in to.split(",")],
            headers=own_headers(),
        )
        return bool(message.send())
    except (SMTPException, OSError, ValueError) as error:
        faults.append(redact(f"the mail was refused: {type(error).__name__}: {error}", LONGEST))
        return isinstance(error, SomeRecipientsRefused)
