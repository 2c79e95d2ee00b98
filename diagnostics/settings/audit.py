"""The audit log of a project: newest first, by person and action, to take away."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics.accounts.audit_log import INSTALLATION, Head, details_of, verify_chain
from diagnostics.accounts.models import AuditEntry
from diagnostics.figures import plural, read_number
from diagnostics.rest.exporting import write_csv, write_json_lines
from diagnostics.settings.frame import settings_view, show
from diagnostics.web.access import ConsoleRequest
from failsoft.json_values import JSON

PAGE = 50
CHECKED_AT_ONCE = 5_000
COLUMNS = ("number", "at", "actor", "action", "target", "details", "address", "hash")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry with its details as pairs."""

    entry: AuditEntry
    details: tuple[tuple[str, str], ...]


@require_safe
@settings_view
def audit(request: ConsoleRequest) -> HttpResponse:
    """Show a page of the log; `before` is the number where the last one ended."""
    chain, rows = _asked(request)
    whole = AuditEntry.objects.filter(chain=chain)
    if before := read_number(request.GET.get("before")):
        rows = rows.filter(number__lt=before)
    found = list(rows[: PAGE + 1])
    context = {
        "lines": [_line(entry) for entry in found[:PAGE]],
        "older": found[PAGE - 1].number if len(found) > PAGE else None,
        "actors": whole.order_by("actor").values_list("actor", flat=True).distinct(),
        "actions": whole.order_by("action").values_list("action", flat=True).distinct(),
        "actor": request.GET.get("actor", ""),
        "action": request.GET.get("action", ""),
        "is_installation": chain == INSTALLATION,
        "may_see_all": request.user.is_superuser,
        "check": _check(chain),
    }
    return show(request, "audit", context, "Audit log")


@require_safe
@settings_view
def export_audit(request: ConsoleRequest) -> HttpResponse:
    """Return the chosen entries, oldest first, as CSV or JSON lines."""
    chain, rows = _asked(request)
    told = (_row(entry) for entry in rows.order_by("number").iterator())
    as_csv = request.GET.get("format") == "csv"
    body: Iterator[str] = write_csv(COLUMNS, told) if as_csv else write_json_lines(told)
    kind, ending = ("text/csv", "csv") if as_csv else ("application/x-ndjson", "jsonl")
    # The whole of it: each line is small, and the reader waits for the end anyway.
    answer = HttpResponse("".join(body), content_type=f"{kind}; charset=utf-8")
    name = f"audit-{chain or 'installation'}.{ending}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _asked(request: ConsoleRequest) -> tuple[int, QuerySet[AuditEntry]]:
    """Return the chain and its chosen entries; the installation's is for superusers."""
    wants_all = request.GET.get("of") == "installation" and request.user.is_superuser
    chain = INSTALLATION if wants_all else request.project.pk
    rows = AuditEntry.objects.filter(chain=chain).order_by("-number")
    for name in ("actor", "action"):
        if value := request.GET.get(name, ""):
            rows = rows.filter(**{name: value})
    return chain, rows


def _check(chain: int) -> tuple[str, str] | None:
    """Walk a short chain and say whether it is whole; a long one is the command's."""
    if AuditEntry.objects.filter(chain=chain).count() > CHECKED_AT_ONCE:
        return None
    found = verify_chain(chain)
    if isinstance(found, Head):
        return "good", f"chain intact: {plural(found.number, 'entry', 'entries')}"
    return "bad", f"chain broken at entry {found.number}: {found.reason}"


def _line(entry: AuditEntry) -> AuditRow:
    told = sorted(details_of(entry).items())
    return AuditRow(entry, tuple((key, _told(value)) for key, value in told))


def _told(value: JSON) -> str:
    """Write a noted value as a person would: no brackets, no quotes, no `None`."""
    match value:
        case None | "" | []:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(_told(one) for one in value)
        case dict():
            told = (f"{key} {_told(one)}" for key, one in value.items())
            return ", ".join(told) or "none"
        case _:
            return str(value)


def _row(entry: AuditEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "details": details_of(entry),
        "address": entry.address,
        "hash": bytes(entry.hash).hex(),
    }
