"""What snippets on the pages say that depends on where they are read."""

from django import template
from django.template import Context

from diagnostics.accounts.projects import place_of_key

register = template.Library()

CLIENTS = {"curl": "curl", "python": "Python", "opentelemetry": "OpenTelemetry"}
"""Clients with a template in `ingest/clients/`, by its name; the first one is open."""


@register.simple_tag(takes_context=True)
def key_place(context: Context) -> str:
    """Name the place of a key of the page's project, as a shell reads it."""
    return place_of_key(context.get("project"))


@register.inclusion_tag("ingest/_snippets.html", takes_context=True)
def client_snippets(context: Context) -> dict[str, object]:
    """Show how each client sends an event, with the key of the page where it has one."""
    return {
        "clients": [(f"ingest/clients/{name}.html", label) for name, label in CLIENTS.items()],
        "base_url": context.get("base_url"),
        "shown_key": context.get("shown_key"),
    }
