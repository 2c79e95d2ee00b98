"""A kept report: as a page, as text, and as the mail it was. Made from its figures anew."""

from django.conf import settings
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from diagnostics.models import Report
from diagnostics.outbound.mailing import render_text
from diagnostics.reports.archive import letter_of, reports_of
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.mail_frame import mail_frame
from diagnostics.views.pages import respond

NOBODY = {
    "why": "This is the copy in the archive.",
    "skipped": "",
    "change": "",
    "pause": "",
    "unsubscribe": "",
}


@require_safe
@member_view
def report(request: ConsoleRequest, number: int) -> HttpResponse:
    """Show a report."""
    found = _report(request, number)
    context = {"section": "reports", "report": found, "letter": letter_of(found)}
    return respond(request, "reports/report", context)


@require_safe
@member_view
def report_text(request: ConsoleRequest, number: int) -> HttpResponse:
    """Give the text part of a report."""
    letter = letter_of(_report(request, number))
    context = {
        "letter": letter,
        "personal": NOBODY,
        "base_url": settings.FAILSOFT_BASE_URL,
    }
    return HttpResponse(render_text("report", context), content_type="text/plain; charset=utf-8")


@require_safe
@member_view
def report_mail(request: ConsoleRequest, number: int) -> HttpResponse:
    """Give the mail of a report, to be framed."""
    return mail_frame(letter_of(_report(request, number)), NOBODY)


def _report(request: ConsoleRequest, number: int) -> Report:
    found = reports_of(request.project.pk).filter(pk=number).first()
    if found is None:
        raise Http404
    return found
