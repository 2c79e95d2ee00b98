"""The pages of the console by place: what the bar shows, what search jumps to, and help."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpResponse

from diagnostics.web.pages import ConsoleRequest, member_page, respond
from failsoft import VERSION


@dataclass(frozen=True, slots=True)
class Destination:
    """A page: its URL name, its label, and the letter that opens it after `g`."""

    name: str
    label: str
    key: str = ""


MAIN = (
    Destination("now", "Now", "n"),
    Destination("incidents", "Incidents", "i"),
    Destination("models", "Models", "m"),
    Destination("failures", "Failures", "f"),
    Destination("runs", "Runs", "r"),
    Destination("alert_rules", "Alerts", "a"),
)
MORE = {
    "Analyse": (
        Destination("compare", "Compare", "c"),
        Destination("prompts", "Prompts", "p"),
        Destination("lab", "Parse lab"),
    ),
    "Execution": (
        Destination("plan_runs", "Plan runs"),
        Destination("tools", "Tools"),
        Destination("breakers", "Breakers"),
        Destination("fix_patterns", "Fix patterns"),
    ),
    "Admin": (
        Destination("ingest", "Data", "d"),
        Destination("reports", "Reports"),
        Destination("settings", "Settings", "s"),
    ),
}
SETTINGS = {
    "Project": (
        Destination("settings_projects", "Projects"),
        Destination("settings_members", "Members"),
        Destination("settings_keys", "API keys"),
        Destination("settings_quotas", "Quotas"),
    ),
    "Models": (
        Destination("settings_providers", "Providers"),
        Destination("prices", "Prices"),
        Destination("settings_planning", "Planning"),
    ),
    "Data": (
        Destination("settings_retention", "Retention"),
        Destination("redaction", "Redaction"),
        Destination("settings_purge", "Purge"),
        Destination("settings_demo", "Demo data"),
    ),
    "Notifications": (
        Destination("settings_mail", "Mail"),
        Destination("alert_channels", "Channels"),
    ),
    "Audit": (Destination("settings_audit", "Audit log"),),
}
DATA = (
    Destination("ingest", "Ingestion"),
    Destination("setup", "Instrument your agent"),
    Destination("deploys", "Deploys"),
)


@member_page
def help_page(request: ConsoleRequest) -> HttpResponse:
    pages = [*MAIN, *(page for group in MORE.values() for page in group)]
    context = {
        "section": "help",
        "has_docs": (settings.BASE_DIR / "site" / "docs").is_dir(),
        "keys": [page for page in pages if page.key],
        "version": VERSION,
    }
    return respond(request, "help/help", context, "Help")
