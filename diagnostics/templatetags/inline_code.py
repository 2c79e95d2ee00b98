"""Messages that quote code between backticks, as the parser's and the planners' do."""

import re

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

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
