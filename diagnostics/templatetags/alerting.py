"""The rules of a model as template tags: a page needs no view that knows of rules."""

from collections.abc import Mapping
from urllib.parse import urlencode

from django import template
from django.template import Context

from diagnostics.alerting.rule_thresholds import WatchedModels
from diagnostics.web.model_links import model_url

register = template.Library()
READ = "watched_models"


@register.inclusion_tag("models/_thresholds.html", takes_context=True)
def thresholds(context: Context, provider: str | None, model: str | None) -> Mapping[str, object]:
    """Show the rules that watch a model, and the way to a new one."""
    page = f"{model_url(provider, model)}#thresholds"
    query = urlencode({"provider": provider or "-", "model": model or "-", "next": page})
    values = {"provider": provider, "model": model}
    rules = WatchedModels(context["project"].pk, values).rules_of(provider, model)
    return {"rules": rules, "query": query}


@register.inclusion_tag("models/_row_thresholds.html", takes_context=True)
def row_thresholds(
    context: Context, provider: str | None, model: str | None
) -> Mapping[str, object]:
    """Show the thresholds of a model that fire in its row; its page has the others."""
    # Read once for all rows of a page.
    kept: WatchedModels | None = context.render_context.get(READ)
    if kept is None:
        project_id = context["project"].pk
        kept = context.render_context[READ] = WatchedModels(project_id, {}, only_fired=True)
    return {"rules": [rule for rule in kept.rules_of(provider, model) if rule.state[0] == "bad"]}
