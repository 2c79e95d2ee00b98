"""One partial serves the page and the refresh; an unchanged one is not sent again."""

import hashlib
import re
from collections.abc import Mapping

from django.http import HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers

from diagnostics.web.access import OF_PAGE_HEADER, ConsoleRequest, frame_of

VOLATILE = re.compile(
    r'<input type="hidden" name="csrfmiddlewaretoken"[^>]*>|<time [^>]*data-checked.*?</time>'
)
"""Parts that differ in every rendering: they do not make a page another page."""


def respond(
    request: ConsoleRequest, name: str, context: Mapping[str, object], title: str = ""
) -> HttpResponse:
    """Render `<name>.html` in its frame; a part of a page, without a title, has none.

    Answers 304 when the reader has the same rendering already.
    """
    page = {"page": f"{name}.html", "page_title": title}
    template = "page.html" if title else f"{name}.html"
    body = render_to_string(template, {**frame_of(request), **page, **context}, request)
    # The same for every rendering until the next sign-in, whatever its volatile parts say.
    stable = (VOLATILE.sub("", body) + request.META.get("CSRF_COOKIE", "")).encode()
    tag = f'W/"{hashlib.blake2b(stable, digest_size=12).hexdigest()}"'
    known = request.headers.get("If-None-Match", "")
    same = request.method == "GET" and tag in known
    response: HttpResponse = HttpResponseNotModified() if same else HttpResponse(body)
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ("HX-Request", OF_PAGE_HEADER, "Cookie"))
    return response
