"""Words and figures of the console's templates."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django import template
from django.conf import settings
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from diagnostics import figures
from diagnostics.accounts.models import Membership
from diagnostics.alerting.dead_man import alarm_of
from diagnostics.prices.prices import write_usd
from diagnostics.selection.query_language import Term, write_term

register = template.Library()

OPEN_BANNER = "▲ One-machine mode: no second factor is asked for. FAILSOFT_REQUIRE_MFA=true does."

FORMATS = {
    "clock": "%H:%M:%S",
    "minute": "%H:%M",
    "lately": "%H:%M",
    "day": "%-d %b %H:%M",
    "full": "%Y-%m-%d %H:%M:%S",
}


@register.simple_tag
def moment(at: datetime | None, form: str = "day") -> SafeString | str:
    """Write a time in UTC; a small script shows it in the viewer's zone."""
    if at is None:
        return figures.DASH
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC" data-form="{}">{}</time>',
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        utc.strftime(FORMATS["full"]),
        form,
        utc.strftime(FORMATS[form]),
    )


@register.simple_tag
def reason(parts: Iterable[str | datetime]) -> SafeString:
    """Write words with times between them, as a verdict gives its reason."""
    written = ((p if isinstance(p, str) else moment(p, "lately"),) for p in parts)
    return format_html_join("", "{}", written)


@register.simple_tag(takes_context=True)
def open_banner(context: Context) -> SafeString | str:
    """Say on every page that this installation asks staff for no second factor."""
    user = getattr(context.get("request"), "user", None)
    if settings.FAILSOFT_REQUIRE_MFA or user is None or not user.is_authenticated:
        return ""
    return format_html('<aside class="notice" aria-label="Notice">{}</aside>', OPEN_BANNER)


@register.simple_tag(takes_context=True)
def nav_link(context: Context, name: str, label: str) -> SafeString | str:
    """Link to a section; the one that is open says so (its view names it `section`)."""
    address = reverse(name)
    if context.get("section") != name:
        return format_html('<a href="{}">{}</a>', address, label)
    return format_html('<a href="{}" aria-current="page">{}</a>', address, label)


@register.simple_tag(takes_context=True)
def tab_link(context: Context, name: str, label: str) -> SafeString | str:
    """Link to a page beside this one; the one that is open names itself `tab`."""
    beside = Context({"section": context.get("tab")})
    return nav_link(beside, name, label)


@register.inclusion_tag("console/_alarm.html", takes_context=True)
def alarm_banner(context: Context) -> dict[str, object]:
    """Say on every page of a project when nobody watches, or what did not get out."""
    project, request = context.get("project"), context.get("request")
    if project is None or request is None:
        return {}
    roles = (one.role for one in (context.get("memberships") or ()) if one.project == project)
    return {
        "alarm": alarm_of(project.pk),
        "may_dismiss": any(role != Membership.Role.VIEWER for role in roles),
        "csrf_token": context.get("csrf_token"),
    }


@register.filter
def percent(share: float | None, digits: int = 1) -> str:
    """Write a share of 0 to 1 as a percentage."""
    return figures.percent(share, digits)


@register.filter
def points(share: float | None) -> str:
    """Write a difference of shares in percentage points."""
    return figures.points(share)


@register.filter
def count(value: int | None) -> str:
    """Write a count with thousands apart."""
    return figures.count(value)


@register.filter
def short_count(value: int | None) -> str:
    """Write a large count short."""
    return figures.short_count(value)


@register.filter
def duration(seconds: float | timedelta | None) -> str:
    """Write a duration in seconds in the units that matter."""
    return figures.duration(seconds)


@register.filter
def usd(amount: Decimal | None) -> str:
    """Write an amount of US dollars."""
    return write_usd(amount)


@register.filter
def milliseconds(value: float | None) -> str:
    """Write a duration in milliseconds in the units that matter."""
    return figures.duration(None if value is None else value / 1000)


@register.filter
def words(value: str | None) -> str:
    """Write a name of code as words: `waiting_user` is `waiting user`."""
    return (value or "").replace("_", " ")


@register.filter
def shorten(text: str, most: int) -> str:
    """Cut a long name in its middle."""
    return figures.shorten(text, most)


@register.filter
def tail(text: str, most: int) -> str:
    """Cut a reference at its beginning: the end tells two of them apart."""
    return text if len(text) <= most else "…" + text[1 - most :]


@register.filter
def written(term: Term) -> str:
    """Write a condition as the query language has it."""
    return write_term(term)


@register.filter
def whole(value: float | None) -> int | None:
    """Round to a whole number, for what is counted."""
    return None if value is None else round(value)


@register.filter
def hundredths(share: float) -> str:
    """Write a share of 0 to 1 as a length on a scale of 100."""
    return f"{share * 100:.1f}"
