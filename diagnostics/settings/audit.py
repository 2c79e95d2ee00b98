"""The audit log of a project: newest first, filtered by actor and action, with export."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse

from diagnostics.accounts.audit_log import INSTALLATION, Head, details_of, verify_chain
from diagnostics.accounts.models import AuditEntry
from diagnostics.figures import plural, read_number
from diagnostics.rest.exporting import write_csv_file, write_json_lines
from diagnostics.settings.frame import settings_page, show
from diagnostics.web.pages import ConsoleRequest
from failsoft.json_values import JSON

PAGE = 50
CHECKED_AT_ONCE = 5_000
COLUMNS = ("number", "at", "actor", "action", "target", "details", "address", "hash")


@settings_page
def audit(request: ConsoleRequest) -> HttpResponse:
    """Show a page of the log; `before` is the last number of the previous page."""
    chain, rows = _selected(request)
    whole = AuditEntry.objects.filter(chain=chain)
    if before := read_number(request.GET.get("before")):
        rows = rows.filter(number__lt=before)
    entries = list(rows[: PAGE + 1])
    context = {
        "lines": [
            (entry, [(k, _format_value(v)) for k, v in sorted(details_of(entry).items())])
            for entry in entries[:PAGE]
        ],
        "older": entries[PAGE - 1].number if len(entries) > PAGE else None,
        "actors": whole.order_by("actor").values_list("actor", flat=True).distinct(),
        "actions": whole.order_by("action").values_list("action", flat=True).distinct(),
        "actor": request.GET.get("actor", ""),
        "action": request.GET.get("action", ""),
        "is_installation": chain == INSTALLATION,
        "may_see_all": request.user.is_superuser,
        "check": _check(chain),
    }
    return show(request, "audit", context, "Audit log")


@settings_page
def export_audit(request: ConsoleRequest) -> HttpResponse:
    chain, rows = _selected(request)
    records = (_row(entry) for entry in rows.order_by("number").iterator())
    as_csv = request.GET.get("format") == "csv"
    body: Iterator[str] = write_csv_file(COLUMNS, records) if as_csv else write_json_lines(records)
    kind, ending = ("text/csv", "csv") if as_csv else ("application/x-ndjson", "jsonl")
    # Not streamed: lines are small, and a partial file is of no use.
    response = HttpResponse("".join(body), content_type=f"{kind}; charset=utf-8")
    name = f"audit-{chain or 'installation'}.{ending}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _selected(request: ConsoleRequest) -> tuple[int, QuerySet[AuditEntry]]:
    """Return the chain and its selected entries; the installation's is for superusers."""
    wants_all = request.GET.get("of") == "installation" and request.user.is_superuser
    chain = INSTALLATION if wants_all else request.project.pk
    rows = AuditEntry.objects.filter(chain=chain).order_by("-number")
    for name in ("actor", "action"):
        if value := request.GET.get(name, "").replace("\0", ""):
            rows = rows.filter(**{name: value})
    return chain, rows


def _check(chain: int) -> tuple[str, str] | None:
    """Verify a short chain; None for a long one, which `verify_audit` has to check."""
    if AuditEntry.objects.filter(chain=chain).count() > CHECKED_AT_ONCE:
        return None
    result = verify_chain(chain)
    if isinstance(result, Head):
        return "good", f"chain intact: {plural(result.number, 'entry', 'entries')}"
    return "bad", f"chain broken at entry {result.number}: {result.reason}"


def _format_value(value: JSON) -> str:
    """Return a value as text without brackets, quotes and `None`."""
    match value:
        case None | "" | []:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(_format_value(item) for item in value)
        case dict():
            pairs = (f"{key} {_format_value(item)}" for key, item in value.items())
            return ", ".join(pairs) or "none"
        case _:
            return str(value)


def _row(entry: AuditEntry) -> dict[str, Any]:
    row = {name: getattr(entry, name) for name in COLUMNS}
    return {**row, "details": details_of(entry), "hash": bytes(entry.hash).hex()}
