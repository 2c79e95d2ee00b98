"""Mail settings, and a test mail to oneself."""

from smtplib import SMTPException

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from diagnostics.accounts.audit_log import note
from diagnostics.outbound.mail import compose
from diagnostics.redaction.redactor import redact
from diagnostics.settings.frame import settings_form, show
from diagnostics.web.access import ConsoleRequest, user_of

REASON_BYTES = 200
WORDS = {"smtp": "SMTP", "console": "server log", "locmem": "memory"}


@settings_form
def mail(request: ConsoleRequest) -> HttpResponse:
    """Show the mail settings; send a test mail."""
    address = user_of(request).email
    if request.method == "POST":
        if address:
            _send_test(request, address)
        else:
            messages.error(request, "Your account has no email address.")
        return redirect("settings_mail")
    backend = settings.EMAIL_BACKEND.split(".")[-2]
    context = {
        "backend": WORDS.get(backend, backend),
        "is_smtp": backend == "smtp",
        "host": settings.EMAIL_HOST,
        "port": settings.EMAIL_PORT,
        "tls": settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL,
        "signs_in_as": settings.EMAIL_HOST_USER,
        "sender": settings.DEFAULT_FROM_EMAIL,
        "base_url": settings.FAILSOFT_BASE_URL,
        "address": address,
    }
    return show(request, "mail", context, "Mail")


def _send_test(request: ConsoleRequest, address: str) -> None:
    sender = user_of(request).get_username()
    message = compose("Test mail of Failsoft", "test", {"by": sender}, [address])
    note(request.project.pk, user_of(request), "mail.tested", "test mail")
    try:
        message.send()
    except (SMTPException, OSError) as error:
        reason = redact(str(error), REASON_BYTES)
        messages.error(request, f"Not sent: {type(error).__name__}: {reason}")
    else:
        messages.success(request, f"Sent to {address}.")
