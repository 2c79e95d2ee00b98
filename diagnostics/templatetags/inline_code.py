"""Messages that quote code between backticks, and excerpts in pieces."""

import re
from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from diagnostics.failures.excerpt import Piece

register = template.Library()

_QUOTED = re.compile(r"`([^`\n]+)`")


@register.filter
def inline_code(text: object) -> SafeString:
    """Write what stands between two backticks as code; everything is escaped piece by piece."""
    pieces = _QUOTED.split(str(text or ""))
    written = (
        format_html("<code>{}</code>", piece) if place % 2 else piece
        for place, piece in enumerate(pieces)
    )
    return format_html_join("", "{}", ((piece,) for piece in written))


PIECES = {"at": "<mark>{}</mark>", "redacted": '<span class="redacted">{}</span>'}


@register.simple_tag
def pieces(parts: Iterable[Piece]) -> SafeString:
    """Write a line in its pieces: the place of a fault and what is masked stand out."""
    written = ([format_html(PIECES.get(part.kind, "{}"), part.text)] for part in parts)
    return format_html_join("", "{}", written)
