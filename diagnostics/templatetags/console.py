"""Words and figures of the console's templates."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import template
from django.conf import settings
from django.forms import BoundField
from django.template import Context
from django.template.defaulttags import CsrfTokenNode
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from diagnostics import figures
from diagnostics.accounts.models import Membership, Profile, Project
from diagnostics.accounts.profiles import NOTICE_DISMISSED, THEME
from diagnostics.accounts.projects import place_of_key
from diagnostics.alerting.dead_man import Alarm, alarm_of
from diagnostics.alerting.wording import scope_words
from diagnostics.failures.excerpt import Piece
from diagnostics.figures import write_moment
from diagnostics.selection.query_language import write_term
from diagnostics.web.navigation import DATA, MAIN, MORE, SETTINGS
from diagnostics.web.pages import OF_PAGE, chosen_project, draft_of, memberships_of
from failsoft import VERSION

register = template.Library()

# Words of Hebrew, Arabic and their neighbours, without the punctuation after them.
RIGHT_TO_LEFT = re.compile(r"[^\s,:;]*[\u0590-\u08ff\ufb1d-\ufefc][^\s,:;]*")
LATER_CAPITAL = re.compile(r"(?<=\w )[A-Z](?=[a-z])")
OPEN_BANNER = "Local mode: MFA is off. Set FAILSOFT_REQUIRE_MFA=true to require it."


@register.simple_tag
def moment(at: datetime | None, form: str = "day") -> SafeString | str:
    """Write a time in the reader's zone, with its name until a script has written it."""
    if at is None:
        return figures.DASH
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}" data-form="{}">{}</time>',
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        write_moment(utc, "full"),
        form,
        write_moment(at, form, timezone.get_current_timezone(), datetime.now(UTC)),
    )


@register.filter
def in_zone(at: datetime, zone: str) -> str:
    """Write a time for readers of a mail, in their zone."""
    return write_moment(at, zone=ZoneInfo(zone))


@register.filter
def sentence_case(text: str) -> str:
    """Write a label of a library that capitalises every word as ours are: abbreviations stay."""
    return LATER_CAPITAL.sub(lambda match: match[0].lower(), text.strip())


@register.filter
def without_placeholder(field: BoundField) -> SafeString:
    """Write the box of a field whose library repeats the label in it."""
    return field.as_widget(attrs={"placeholder": False})


@register.simple_tag
def zone() -> str:
    """Write the name of the reader's zone, as far as the server knows it."""
    return timezone.get_current_timezone_name()


@register.filter
def isolated(text: str) -> str:
    """Keep names that are written right to left from drawing figures to their left."""
    return RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", text)


@register.simple_tag
def reason(parts: Iterable[str | datetime]) -> SafeString:
    """Write words with times between them, as a verdict gives its reason."""
    written = ((isolated(p) if isinstance(p, str) else moment(p, "lately"),) for p in parts)
    return format_html_join("", "{}", written)


@register.inclusion_tag("console/_bar.html", takes_context=True)
def bar(context: Context) -> dict[str, object]:
    """Show the bar; a page that is of no project shows the reader's chosen one."""
    request = context["request"]
    project, memberships = context.get("project"), context.get("memberships")
    if memberships is None and request.user.is_authenticated:
        memberships = memberships_of(request)
        project = chosen_project(request, memberships) if memberships else None
    is_open = request.user.is_authenticated and not settings.FAILSOFT_REQUIRE_MFA
    return {
        "request": request,
        "user": request.user,
        "csrf_token": context.get("csrf_token"),
        "section": context.get("section"),
        "project": project,
        "memberships": memberships,
        "main": MAIN,
        "more": MORE.items(),
        "version": VERSION,
        "back": request.get_full_path() if request.method == "GET" else "/",
        "theme": request.session.get(THEME) or Profile.Theme.SYSTEM,
        "themes": Profile.Theme.choices,
        "notice": OPEN_BANNER if is_open and not request.session.get(NOTICE_DISMISSED) else "",
    }


@register.simple_tag(takes_context=True)
def kept_draft(context: Context) -> Mapping[str, object] | None:
    """Return what a form of this page held when its session had ended."""
    request = context.get("request")
    return draft_of(request) if request and request.user.is_authenticated else None


@register.simple_tag(takes_context=True)
def open_incidents(context: Context) -> int:
    project, request = context.get("project"), context.get("request")
    return _alarm(request, project).open_incidents if project and request else 0


def _alarm(request: Any, project: Project) -> Alarm:  # noqa: ANN401 - kept on the request
    """Read the alarm of a project once for a page."""
    if not hasattr(request, "alarm"):
        request.alarm = alarm_of(project.pk)
    alarm: Alarm = request.alarm
    return alarm


@register.simple_tag(takes_context=True)
def nav_link(context: Context, name: str, label: str, key: str = "") -> SafeString | str:
    """Link to a section; the one that is open says so (its view names it `section`)."""
    current = SafeString(' aria-current="page"') if context.get("section") == name else ""
    go = format_html(' data-go="{}"', key) if key else ""
    return format_html('<a href="{}"{}{}>{}</a>', reverse(name), current, go, label)


@register.simple_tag(takes_context=True)
def tab_link(context: Context, name: str, label: str) -> SafeString | str:
    """Link to a page beside this one; the one that is open names itself `tab`."""
    beside = Context({"section": context.get("tab")})
    return nav_link(beside, name, label)


@register.inclusion_tag("console/_data_tabs.html", takes_context=True)
def data_tabs(context: Context) -> dict[str, object]:
    return {"tab": context.get("tab"), "pages": DATA, "project": context.get("project")}


@register.inclusion_tag("console/_settings_tabs.html", takes_context=True)
def settings_tabs(context: Context) -> dict[str, object]:
    groups = SETTINGS.items()
    return {"tab": context.get("tab"), "groups": groups, "project": context.get("project")}


@register.inclusion_tag("console/_alarm.html", takes_context=True)
def alarm_banner(context: Context) -> dict[str, object]:
    """Say on every page of a project when alerting is not running, or what was not sent."""
    project, request = context.get("project"), context.get("request")
    if project is None or request is None:
        return {}
    roles = (
        member.role for member in (context.get("memberships") or ()) if member.project == project
    )
    return {
        "alarm": _alarm(request, project),
        "may_dismiss": any(role != Membership.Role.VIEWER for role in roles),
        "csrf_token": context.get("csrf_token"),
    }


HIDDEN = '{}<input type="hidden" name="{}" value="{}">'
BUTTON = '<form method="post" action="{}">{}{}<button type="submit"{}>{}{}</button></form>'


@register.simple_tag(takes_context=True)
def csrf_token(context: Context) -> SafeString:
    """Write Django's token, and the project of the page: the form acts on that one."""
    token, project = CsrfTokenNode().render(context), context.get("project")
    return format_html(HIDDEN, token, OF_PAGE, project.slug) if project else SafeString(token)


@register.simple_tag(takes_context=True)
def post_button(
    context: Context,
    name: str,
    *args: object,
    label: str,
    style: str = "",
    about: object = "",
    back: str = "",
) -> SafeString:
    """Write a form that is a button alone; `about` tells it from others where nobody sees.

    `back` is the page to return to, where that is not the one that the button acts on.
    """
    look = format_html(' class="{}"', style) if style else ""
    beside = format_html('<span class="sr"> {}</span>', about) if about else ""
    token = csrf_token(context)
    then = format_html('<input type="hidden" name="next" value="{}">', back) if back else ""
    return format_html(BUTTON, reverse(name, args=args), token, then, look, label, beside)


@register.simple_tag
def options(choices: Iterable[tuple[object, str]], chosen: object) -> SafeString:
    written = ((v, SafeString(" selected" if v == chosen else ""), label) for v, label in choices)
    return format_html_join("", '<option value="{}"{}>{}</option>', written)


@register.inclusion_tag("console/_field.html")
def field(field: BoundField, *, plain: bool = False, is_chooser: bool = False) -> dict[str, object]:
    """Write a field of a form with its label, errors and help; a plain one is never optional.

    What a chooser says decides which of the form's parts `for-<value>` are shown.
    """
    return {"field": field, "plain": plain, "is_chooser": is_chooser}


FILTERS: Mapping[str, Callable[..., object]] = {
    "percent": figures.percent,
    "rate": figures.rate_percent,
    "points": figures.points,
    "count": figures.count,
    "plural": figures.plural,
    "short_count": figures.short_count,
    "duration": figures.duration,
    "shorten": figures.shorten,
    "usd": figures.write_usd,
    "written": write_term,
    "scope": scope_words,
}
for _name, _write in FILTERS.items():
    register.filter(_name, _write)


@register.filter
def milliseconds(value: float | None) -> str:
    return figures.duration(None if value is None else value / 1000)


@register.filter
def words(value: str | None) -> str:
    """Write a name of code as words: `waiting_user` is `waiting user`."""
    return (value or "").replace("_", " ")


@register.filter
def tail(text: str, most: int) -> str:
    """Cut a reference at its beginning: the end tells two of them apart."""
    return text if len(text) <= most else "…" + text[1 - most :]


@register.filter
def whole(value: float | None) -> int | None:
    return None if value is None else round(value)


@register.filter
def hundredths(share: float) -> str:
    """Write a share of 0 to 1 as a length on a scale of 100."""
    return f"{share * 100:.1f}"


@register.simple_tag(takes_context=True)
def key_place(context: Context) -> str:
    return place_of_key(context.get("project"))


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
