"""What snippets on the pages say that depends on where they are read."""

from django import template
from django.template import Context

from diagnostics.accounts.projects import place_of_key

register = template.Library()


@register.simple_tag(takes_context=True)
def key_place(context: Context) -> str:
    """Name the place of a key of the page's project, as a shell reads it."""
    return place_of_key(context.get("project"))
