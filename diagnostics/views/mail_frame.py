"""A mail as a document of its own, to be shown in a frame of the console.

It holds no script, loads nothing and may do nothing: its policy says so to the browser, and
the frame it stands in has a sandbox of its own.
"""

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpResponse

from diagnostics.core.reports.letter import Letter
from diagnostics.outbound.mailing import render_html

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; "
    "form-action 'none'; base-uri 'none'; sandbox"
)


def mail_frame(letter: Letter, personal: Mapping[str, str]) -> HttpResponse:
    """Render the HTML part of a report under a policy that allows nothing but styles."""
    context = {
        "letter": letter,
        "personal": personal,
        "subject": letter.subject,
        "base_url": settings.FAILSOFT_BASE_URL,
    }
    response = HttpResponse(render_html("report", context))
    response["Content-Security-Policy"] = POLICY
    response["X-Frame-Options"] = "SAMEORIGIN"
    response["Cache-Control"] = "private, no-store"
    return response
