"""Mails: one template pair, one frame, two parts of equal content, clean headers.

`templates/mail/<name>.html` extends `mail/_frame.html`, `<name>.txt` the frame of the same
name. Styles are inlined, since many mail clients drop style sheets; only rules for dark mode
remain a sheet. Nothing is loaded from elsewhere.

A mail to many is rendered and encoded once, which costs a thousand times as much as substitution.
Its parts contain random marks in place of the values of each recipient; they are found in the
encoded mail, even where quoted-printable breaks a line inside one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from functools import cache
from html import escape
from quopri import encodestring
from typing import Any
from urllib.parse import urlsplit

from css_inline import CSSInliner
from django.conf import settings
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.message import sanitize_address
from django.template.base import Template
from django.template.context import make_context
from django.template.loader import get_template
from django.utils.crypto import get_random_string

from diagnostics.outbound.mail_headers import clean_header, clean_subject, message_id

BACKENDS = {"smtp": "SMTP", "console": "server log", "locmem": "memory", "filebased": "folder"}


def backend_words() -> str:
    """Return how mails leave, as the settings name it."""
    return BACKENDS[settings.EMAIL_BACKEND.split(".")[-2]]


def unsent_words() -> str:
    """Say where a mail is that was handed over without a mail server; nothing with one."""
    if (backend := backend_words()) == "SMTP":
        return ""
    return f"Written to the {backend}: no mail server is set (FAILSOFT_EMAIL_URL)."


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
    values = {**context, "subject": line}
    return assemble(line, render_text(template, values), render_html(template, values), to, headers)


def assemble(
    subject: str, text: str, html: str, to: Sequence[str], headers: Mapping[str, str] | None = None
) -> EmailMultiAlternatives:
    extra_headers = {name: clean_header(value) for name, value in (headers or {}).items()}
    mail = EmailMultiAlternatives(
        subject=subject,
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
    return _inliner().inline(_render(f"mail/{template}.html", context, escaped=True))


def render_text(template: str, context: Mapping[str, Any]) -> str:
    """Render the text part: nothing is escaped, lines end without spaces."""
    rendered = _render(f"mail/{template}.txt", context, escaped=False)
    lines = (line.rstrip() for line in rendered.strip().splitlines())
    return "\n".join(lines) + "\n"


def _render(name: str, context: Mapping[str, Any], *, escaped: bool) -> str:
    template: Template = get_template(name).template  # type: ignore[attr-defined]
    values = {**context, "base_url": settings.FAILSOFT_BASE_URL}
    return str(template.render(make_context(values, autoescape=escaped)))


@cache
def _inliner() -> CSSInliner:
    return CSSInliner(load_remote_stylesheets=False)


MARK_LENGTH = 16
LINE = "\r\n"
# Addresses that need no encoding, which are nearly all.
PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}")
PERSONAL_HEADERS = ("To", "Message-ID")
PersonalValue = Callable[[Mapping[str, str]], bytes]
"""Takes the values of a recipient and returns one of them, encoded as its part is."""


class MailMerge:
    """A mail with placeholders for personal values."""

    def __init__(
        self,
        subject: str,
        template: str,
        context: Mapping[str, Any],
        personal: Sequence[str],
        pictures: Mapping[str, bytes],
    ) -> None:
        """Render both parts with marks for `personal.<name>`, and encode them.

        `pictures` are PNG by the Content-ID under which the HTML part shows them.
        """
        self.subject = clean_subject(subject)
        in_text = {name: get_random_string(MARK_LENGTH) for name in personal}
        in_html = {name: get_random_string(MARK_LENGTH) for name in personal}
        values = {**context, "subject": self.subject}
        text = render_text(template, {**values, "personal": in_text})
        html = render_html(template, {**values, "personal": in_html})
        message: Any = assemble(self.subject, text, html, []).message()
        for name in PERSONAL_HEADERS:
            del message[name]
        values_in_parts = _personal_values(message, (in_text, in_html))
        if pictures:
            _attach_pictures(message, pictures)
        self._pieces = _cut(message.as_bytes(linesep=LINE), values_in_parts)

    def copy_for(
        self, address: str, values: Mapping[str, str], message_id: str, headers: Mapping[str, str]
    ) -> "Copy":
        """Return the mail to one address; this only joins the pieces."""
        line = clean_header(address)
        head = {
            # ValueError unless it is exactly one address.
            "To": line if PLAIN_ADDRESS.fullmatch(line) else str(sanitize_address(line, "utf-8")),
            "Message-ID": clean_header(message_id),
            **{name: clean_header(value) for name, value in headers.items()},
        }
        lines = "".join(f"{name}: {value}{LINE}" for name, value in head.items())
        body = b"".join(
            piece if isinstance(piece, bytes) else piece(values) for piece in self._pieces
        )
        return Copy(self.subject, address, lines.encode("ascii", "replace") + body)


class Copy(EmailMessage):
    def __init__(self, subject: str, address: str, encoded: bytes) -> None:
        super().__init__(subject=subject, to=[clean_header(address)])
        self.encoded = encoded

    def message(self) -> Any:  # type: ignore[override] # noqa: ANN401 - what backends use
        return Encoded(self.encoded)


class Encoded:
    """The part of a message's interface that mail backends use."""

    def __init__(self, encoded: bytes) -> None:
        """Store the bytes, with the line ends of SMTP."""
        self._encoded = encoded

    def as_bytes(self, unixfrom: bool = False, linesep: str = "\n") -> bytes:  # noqa: FBT001, FBT002, RUF100
        if linesep == LINE:
            return self._encoded
        return self._encoded.replace(LINE.encode(), linesep.encode())

    def get_charset(self) -> None:
        """Return None: the parts name their charset."""


def _attach_pictures(message: Any, pictures: Mapping[str, bytes]) -> None:  # noqa: ANN401 - a message
    """Combine the HTML part and its pictures into one part."""
    text, html = message.get_payload()
    related = MIMEMultipart("related", None, [html])
    for cid, png in pictures.items():
        picture = MIMEImage(png, "png")
        picture["Content-ID"] = f"<{cid}>"
        picture["Content-Disposition"] = "inline"
        related.attach(picture)
    message.set_payload([text, related])


def _personal_values(
    message: Message, marks: Sequence[Mapping[str, str]]
) -> dict[str, PersonalValue]:
    """Return what stands in the place of every mark."""
    parts: Any = message.get_payload()
    return {
        mark: _personal_value(
            name,
            is_html=part.get_content_subtype() == "html",
            is_quoted=part["Content-Transfer-Encoding"] == "quoted-printable",
        )
        for part, by_name in zip(parts, marks, strict=True)
        for name, mark in by_name.items()
    }


def _personal_value(name: str, *, is_html: bool, is_quoted: bool) -> PersonalValue:
    def encode(values: Mapping[str, str]) -> bytes:
        written = (escape(values[name]) if is_html else values[name]).encode()
        if not is_quoted:
            return written
        return encodestring(written).replace(b"=\n", b"").rstrip(b"\n")

    return encode


def _cut(encoded: bytes, marks: Mapping[str, PersonalValue]) -> list[bytes | PersonalValue]:
    """Split the mail at its marks, even where quoted-printable breaks a line inside one."""
    patterns = ["(?:=\r\n)?".join(mark) for mark in marks]
    pieces = re.split(f"({'|'.join(patterns)})".encode(), encoded)
    return [
        marks[piece.replace(b"=\r\n", b"").decode()] if index % 2 else piece
        for index, piece in enumerate(pieces)
    ]
