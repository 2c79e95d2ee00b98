"""Mails: one template pair, one frame, two parts of equal content, clean headers.

`templates/mail/<name>.html` extends `mail/_frame.html`, `<name>.txt` the frame of the same
name. Styles are inlined, since many mail clients drop style sheets; only rules for dark mode
remain a sheet. Nothing is loaded from elsewhere.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from css_inline import CSSInliner
from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.base import Template
from django.template.context import make_context
from django.template.loader import get_template
from django.utils.crypto import get_random_string

from diagnostics.outbound.mail_headers import clean_header, clean_subject, message_id


def compose(
    subject: str,
    template: str,
    context: Mapping[str, Any],
    to: Sequence[str],
    headers: Mapping[str, str] | None = None,
) -> EmailMultiAlternatives:
    """Return a mail from `mail/<template>.html` and `.txt`, ready to send.

    Values are escaped in the HTML part and plain in the text part; both know `subject` and
    `base_url`. Subject, addresses and header values become one line each without control
    characters. A `Message-ID` among the headers is kept, else a new one is made.
    """
    line = clean_subject(subject)
    values = {**context, "subject": line, "base_url": settings.FAILSOFT_BASE_URL}
    return assemble(line, render_text(template, values), render_html(template, values), to, headers)


def assemble(
    subject: str, text: str, html: str, to: Sequence[str], headers: Mapping[str, str] | None = None
) -> EmailMultiAlternatives:
    """Return a mail of two rendered parts with clean headers."""
    extra_headers = {name: clean_header(value) for name, value in (headers or {}).items()}
    mail = EmailMultiAlternatives(
        subject=clean_subject(subject),
        body=text,
        to=[clean_header(address) for address in to],
        headers={**own_headers(), **extra_headers},
    )
    mail.attach_alternative(html, "text/html")
    return mail


def own_headers() -> dict[str, str]:
    """Return what every mail has: an id of our host, and what suppresses replies (RFC 3834)."""
    return {
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
        "Message-ID": make_message_id(get_random_string(22)),
    }


def make_message_id(name: str) -> str:
    """Return a mail's id from our own name for it, at the host of FAILSOFT_BASE_URL."""
    return message_id(name, urlsplit(settings.FAILSOFT_BASE_URL).hostname or "")


def render_html(template: str, context: Mapping[str, Any]) -> str:
    """Render the HTML part, its styles inlined."""
    return _inliner().inline(_render(f"mail/{template}.html", context, escaped=True))


def render_text(template: str, context: Mapping[str, Any]) -> str:
    """Render the text part: nothing is escaped, lines end without spaces."""
    rendered = _render(f"mail/{template}.txt", context, escaped=False)
    lines = (line.rstrip() for line in rendered.strip().splitlines())
    return "\n".join(lines) + "\n"


def _render(name: str, context: Mapping[str, Any], *, escaped: bool) -> str:
    template: Template = get_template(name).template  # type: ignore[attr-defined]
    return str(template.render(make_context(dict(context), autoescape=escaped)))


@cache
def _inliner() -> CSSInliner:
    return CSSInliner(load_remote_stylesheets=False)
