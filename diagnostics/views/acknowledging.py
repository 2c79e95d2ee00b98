"""The acknowledge link of a notification: it asks first, works once, needs no sign-in.

Scanners of mail open every link: looking changes nothing, only the button does.
"""

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.alerts.incidents import acknowledge
from diagnostics.models import Notification
from diagnostics.notifications.ack_links import BadLinkError, read_link

GONE = 410


# Who has the link may use it: it is what a cookie would prove elsewhere.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge_link(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether to acknowledge; a POST does it, unless the link was used before."""
    try:
        number = read_link(token, clock.now())
    except BadLinkError:
        return _answer(request, "bad", status=404)
    rows = Notification.objects.select_related("incident", "channel", "project")
    row = rows.filter(pk=number, incident__isnull=False).first()
    if row is None or row.incident is None:
        return _answer(request, "bad", status=404)
    if row.link_used_at is not None:
        return _answer(request, "used", row, status=GONE)
    if row.incident.cleared_at is not None:
        return _answer(request, "over", row)
    if row.incident.acknowledged_at is not None:
        return _answer(request, "known", row)
    if request.method != "POST":
        return _answer(request, "ask", row)
    done = _use(row)
    return _answer(request, "done" if done else "used", row, status=200 if done else GONE)


@transaction.atomic
def _use(row: Notification) -> bool:
    """Take the link, once, and acknowledge in its name."""
    unused = Notification.objects.filter(pk=row.pk, link_used_at__isnull=True)
    if not unused.update(link_used_at=clock.now()) or row.incident is None:
        return False
    acknowledge(row.incident, None, f"link sent to the channel {row.channel.name}")
    return True


def _answer(
    request: HttpRequest, what: str, row: Notification | None = None, status: int = 200
) -> HttpResponse:
    context = {"what": what, "row": row, "incident": row.incident if row else None}
    answer = render(request, "incidents/acknowledge.html", context, status=status)
    # The address is the permission: it must not go along to where a link leads.
    answer["Referrer-Policy"] = "no-referrer"
    return answer
