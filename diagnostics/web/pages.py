"""Pages of the console: who may open one and act on it, and how it is rendered.

One partial serves the page and the refresh; an unchanged one is not sent again.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlsplit

from allauth.core.internal.ratelimit import consume
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.utils import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails
from psycopg import Error
from psycopg.errors import QueryCanceled

from diagnostics.accounts.models import Membership, Project
from diagnostics.redaction.redactor import redact_json
from diagnostics.redaction.rules import texts_of
from diagnostics.selection.fields import RANGES
from diagnostics.selection.selection import read_selection
from diagnostics.store.kept_answers import AnswerPendingError, limited_wait
from diagnostics.store.sql import is_own
from failsoft.redaction.secret_names import is_secret_name

SET = "SELECT set_config('statement_timeout', %s, false)"


@contextmanager
def limited_statements(seconds: float) -> Iterator[None]:
    """Let no statement inside run longer, on this connection.

    It is set for the session and taken back afterwards: pages read in autocommit, where
    SET LOCAL would end with its own statement, and the connection goes back to a pool.
    Behind a pooler the limit is that of the role.
    """
    connection.ensure_connection()
    server = connection.connection
    if not is_own(server):
        yield
        return
    server.execute(SET, [f"{seconds * 1000:.0f}"])
    try:
        yield
    finally:
        # In a transaction that failed, rolling back takes it back.
        with suppress(Error):
            server.execute("RESET statement_timeout")


def was_stopped(error: OperationalError) -> bool:
    """Whether a statement was stopped because it took too long."""
    return isinstance(error.__cause__, QueryCanceled)


P = ParamSpec("P")
CHOSEN = "project"
# Cookie of the project chosen last in this browser, for the next sign-in.
CHOSEN_LAST = "failsoft_project"
# Field of a form, and header of htmx: the project of the page, whatever another tab has opened.
OF_PAGE, OF_PAGE_HEADER = "of_project", "X-Project"
READING = frozenset({"GET", "HEAD"})
DRAFT = "draft"
DRAFT_CHARACTERS = 50_000
# Anyone may send a form without a session; each draft is a row.
DRAFT_RATE = {DRAFT: "20/h/ip"}
# A page that takes longer is asked to narrow its range.
STATEMENT_SECONDS = 5


class ConsoleRequest(HttpRequest):
    """What `member_view` adds to a request: the project it is about."""

    htmx: HtmxDetails
    project: Project
    memberships: Sequence[Membership]


ConsoleView = Callable[Concatenate[ConsoleRequest, P], HttpResponse]


def member_view(view: ConsoleView[P]) -> ConsoleView[P]:
    """Let members of a project in; others sign in first, or learn that they have none.

    The project is that of the page, else the one chosen last, else the first. One the
    reader is not a member of is never chosen, so every query below is theirs to make.
    """

    @wraps(view)
    def guarded(request: ConsoleRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        memberships = memberships_of(request)
        if not memberships:
            return render(request, "console/no_project.html", status=403)
        request.memberships = memberships
        request.project = chosen_project(request, memberships)
        of_page = project_of_page(request)
        if of_page and of_page != request.project.slug:
            raise Http404
        if request.method not in READING:
            if of_page:
                request.session[CHOSEN] = of_page
            with texts_of(request.project.pk):
                return view(request, *args, **kwargs)
        # A reload shows nothing until the first byte; htmx leaves the old page while it waits.
        pace = nullcontext() if request.htmx else limited_wait()
        try:
            with texts_of(request.project.pk), limited_statements(STATEMENT_SECONDS), pace:
                return view(request, *args, **kwargs)
        except AnswerPendingError:
            # The frame stays when the page comes: its link says already which one that is.
            section = request.resolver_match and request.resolver_match.url_name
            return _error_page(request, "console/pending.html", "Judging", section=section)
        except OperationalError as error:
            if was_stopped(error):
                return _ask_for_less(request)
            raise

    guarded.asks_membership = True  # type: ignore[attr-defined]  # read when a token is refused
    return guarded


def member_page(view: ConsoleView[P]) -> ConsoleView[P]:
    return require_safe(member_view(view))


def member_form(view: ConsoleView[P]) -> ConsoleView[P]:
    return require_http_methods(["GET", "HEAD", "POST"])(member_view(view))


def member_action(view: ConsoleView[P]) -> ConsoleView[P]:
    return require_POST(member_view(view))


def _ask_for_less(request: ConsoleRequest) -> HttpResponse:
    """Say that the query was stopped, and lead to shorter ranges and fewer filters."""
    selection = read_selection(request.GET.dict())
    shorter = [
        (f"{name[:-1]} {name[-1]}", selection.query(range=name))
        for name, span in RANGES.items()
        if span < selection.span
    ]
    shown = {"seconds": STATEMENT_SECONDS, "shorter": shorter, "chips": selection.chips()}
    response = _error_page(request, "console/narrow.html", "Query timed out", 503, **shown)
    response["HX-Retarget"] = "#page"
    response["HX-Reselect"] = "#page"
    return response


def _error_page(
    request: ConsoleRequest, page: str, title: str, status: int = 200, **shown: object
) -> HttpResponse:
    """Answer with another page than the one that was asked for."""
    context = {**frame_of(request), "page": page, "page_title": title, **shown}
    response = render(request, "page.html", context, status=status)
    patch_vary_headers(response, ("HX-Request", OF_PAGE_HEADER, "Cookie"))
    return response


def frame_of(request: ConsoleRequest) -> dict[str, object]:
    """Return what the frame of a page shows, and which it is: for htmx the title alone."""
    is_fragment = request.htmx and not request.htmx.history_restore_request
    return {
        "frame": "fragment.html" if is_fragment else "base.html",
        "project": request.project,
        "memberships": request.memberships,
        "may_act": may_act(request),
        "may_administer": may_administer(request),
        "base_url": request.build_absolute_uri("/").rstrip("/"),
    }


def _to_sign_in(request: ConsoleRequest) -> HttpResponse:
    """Lead to signing in; a refresh in a page must not swap the form into that page."""
    page = request.get_full_path()
    if request.method not in READING:
        sent_from = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
        page = own_page(request, sent_from, "/").partition("#")[0]
        _keep_draft(request, page)
    if request.htmx:
        return HttpResponseClientRefresh()
    return redirect_to_login(page)


def _keep_draft(request: ConsoleRequest, page: str) -> None:
    """Keep what was written into a form, without secrets and files, until after sign-in."""
    secret = {"csrfmiddlewaretoken", *getattr(request, "sensitive_post_parameters", ())}
    fields = {
        name: values
        for name, values in request.POST.lists()
        if name not in secret and not is_secret_name(name)
    }
    is_short = sum(len(text) for values in fields.values() for text in values) <= DRAFT_CHARACTERS
    if is_short and consume(request, app=DRAFT, action=DRAFT, config=DRAFT_RATE):
        request.session[DRAFT] = {
            "page": page,
            "action": request.get_full_path(),
            "fields": redact_json(fields),
            "user_id": getattr(request, "ended_user_id", None),
        }


def draft_of(request: HttpRequest) -> Mapping[str, object] | None:
    """Take the draft that was kept for this page, once, unless it is another user's."""
    draft: Mapping[str, object] | None = request.session.get(DRAFT)
    if draft is None or draft["page"] != request.get_full_path():
        return None
    del request.session[DRAFT]
    return draft if draft["user_id"] in (None, request.user.pk) else None


def may_act(request: ConsoleRequest) -> bool:
    """Whether the member may submit, answer and cancel, not only look."""
    return role_of(request) != Membership.Role.VIEWER


def may_administer(request: ConsoleRequest) -> bool:
    """Whether the member may change how the project is set up."""
    return role_of(request) == Membership.Role.ADMIN


def user_of(request: ConsoleRequest) -> User:
    user = request.user
    if not isinstance(user, User):
        raise TypeError("a view without member_view")
    return user


def require_actor(request: ConsoleRequest) -> User:
    """Return the person who asks; refuse whoever may only look."""
    if not may_act(request):
        raise PermissionDenied
    return user_of(request)


def require_administrator(request: ConsoleRequest) -> None:
    if not may_administer(request):
        raise PermissionDenied


def own_page(request: HttpRequest, address: str, otherwise: str) -> str:
    """Return the path of an address if it is a page of this console: never another host's."""
    if not url_has_allowed_host_and_scheme(address, {request.get_host()}):
        return otherwise
    path = urlsplit(address)._replace(scheme="", netloc="").geturl()
    # What is left of `http://here//elsewhere` would lead elsewhere.
    is_path = path.startswith("/") and url_has_allowed_host_and_scheme(path, None)
    return path if is_path else otherwise


def memberships_of(request: HttpRequest) -> Sequence[Membership]:
    memberships = Membership.objects.filter(user_id=request.user.pk or 0)
    return list(memberships.select_related("project").order_by("project__name", "pk"))


def role_of(request: ConsoleRequest) -> str:
    return next(m.role for m in request.memberships if m.project == request.project)


def project_of_page(request: HttpRequest) -> str:
    """Return the slug of the project whose page sent this request; empty if it does not say."""
    return request.headers.get(OF_PAGE_HEADER) or request.POST.get(OF_PAGE, "")


def chosen_project(request: HttpRequest, memberships: Sequence[Membership]) -> Project:
    """Return the project of the page, else the one chosen last, else the first."""
    chosen = request.session.get(CHOSEN) or request.COOKIES.get(CHOSEN_LAST)
    slug = project_of_page(request) or chosen
    return next((m for m in memberships if m.project.slug == slug), memberships[0]).project


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
