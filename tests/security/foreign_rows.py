"""Rows of another project for every model, and what each parameter of an address names."""

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import models

from diagnostics import clock
from diagnostics.accounts.administration import OURS, project_path
from diagnostics.accounts.models import Project

# A parameter that is no row's: these are tried as they are.
FIXED = {
    "verb": ("approve", "reject", "resolve", "mute", "cancel", "isolate", "close"),
    "ending": ("csv", "jsonl"),
    "name": ("fake-1", "payload"),
    "provider": ("fake",),
    "token": ("x" * 32,),
    "position": ("0",),
    "node": ("plan",),
}
# Which model's number stands in an address: the first pattern that fits, then the parameter.
NAMED = (
    (r"^settings/members/", "identity", "diagnostics.Membership"),
    (r"^settings/invitations/", "identity", "diagnostics.Invitation"),
    (r"^settings/keys/", "identity", "diagnostics.ApiKey"),
    (r"^settings/prices/", "identity", "diagnostics.Price"),
    (r"^settings/redaction/", "identity", "diagnostics.RedactionRule"),
    (r"^settings/providers/<int:identity>", "identity", "agents.Provider"),
    (r"^settings/(providers|models)/", "identity", "agents.LanguageModel"),
    (r"", "provider_id", "agents.Provider"),
    (r"", "breaker_id", "agents.Breaker"),
    (r"", "pattern_id", "agents.FixPattern"),
    (r"", "goal_id", "agents.Goal"),
    (r"^(goals|runs|api/v1/goals)/", "reference", "agents.Goal"),
    (r"^api/v1/runs/", "reference", "diagnostics.AgentRun"),
    (r"", "run_id", "plans.Run"),
    (r"", "group_id", "diagnostics.FailureGroup"),
    (r"", "incident_id", "diagnostics.Incident"),
    (r"", "rule_id", "diagnostics.AlertRule"),
    (r"", "silence_id", "diagnostics.Silence"),
    (r"", "view_id", "diagnostics.SavedView"),
    (r"^incidents/", "number", "diagnostics.Incident"),
    (r"^alerts/rules/", "number", "diagnostics.AlertRule"),
    (r"^alerts/silences/", "number", "diagnostics.Silence"),
    (r"^alerts/channels/", "number", "diagnostics.Channel"),
    (r"^alerts/notifications/", "number", "diagnostics.Notification"),
    (r"^reports/subscriptions/", "number", "diagnostics.Subscription"),
    (r"^reports/", "number", "diagnostics.Report"),
)
WORD = "otherpeoples"
# What a row needs besides, where a constraint binds its columns to each other.
ALSO: dict[str, dict[str, Any]] = {
    "agents.BreakerTransition": {"to_state": "open"},
    "agents.FixPattern": {
        "schema": "PlanPayload",
        "error_class": "schema_invalid",
        "change": "renamed",
        "code": "missing",
        "pointer": "/steps",
        "before": "text",
        "after": "object",
    },
    "diagnostics.Price": {
        "input_per_million": Decimal(1),
        "output_per_million": Decimal(1),
        "currency": "USD",
    },
}


def model_of(route: str, name: str) -> type[models.Model] | None:
    """Give the model whose row a parameter names; None for a fixed or unknown one."""
    for pattern, parameter, label in NAMED:
        if parameter == name and re.search(pattern, route):
            return apps.get_model(label)
    return None


def is_known(route: str, name: str) -> bool:
    """Say whether it is known what a parameter of an address stands for."""
    return model_of(route, name) is not None or name in FIXED


def rows_to_make() -> Iterator[type[models.Model]]:
    """Give the models that belong to a project and that a row can be made of."""
    for model in apps.get_models():
        is_ours = model._meta.app_label in OURS and model is not Project
        is_plain = not isinstance(model._meta.pk, models.CompositePrimaryKey)
        if is_ours and is_plain and model._meta.managed and project_path(model):
            yield model


def first_of(model: type[models.Model], project: Project) -> Any:
    """Give a project's row of a model, made up when there is none yet."""
    path = project_path(model)
    rows = model._default_manager.filter(**{str(path): project.pk})
    return rows.first() or make_row(model, project)


def make_row(model: type[models.Model], project: Project) -> Any:
    """Make a row of a project out of made-up values."""
    values = {
        field.name: made_up(field, project)
        for field in model._meta.fields
        if not field.has_default()
        and not isinstance(field, models.AutoField)
        and (not field.null or isinstance(field, models.ForeignKey))
        and field.db_default is models.NOT_PROVIDED
    }
    values |= ALSO.get(model._meta.label, {})
    return model._default_manager.create(**values)


def made_up(field: Any, project: Project) -> Any:
    """Make up a value that a field takes."""
    if isinstance(field, models.ForeignKey):
        return _related(field, project)
    if field.choices:
        return field.choices[0][0]
    if isinstance(field, models.DateTimeField):
        return clock.now() + timedelta(days=1)
    if isinstance(field, models.DateField):
        return clock.now().date()
    makers: dict[type[Any], Any] = {
        models.BooleanField: True,
        models.JSONField: {},
        models.BinaryField: uuid4().bytes * 2,
        models.UUIDField: uuid4(),
        models.FloatField: 0.5,
        models.DecimalField: Decimal("0.5"),
        models.TimeField: clock.now().time(),
        models.EmailField: f"{WORD}@example.org",
        models.IntegerField: 1,
    }
    for kind, value in makers.items():
        if isinstance(field, kind):
            return value
    if type(field).__name__ == "ArrayField":
        return []
    return f"{WORD}-{uuid4().hex[:6]}"[-(field.max_length or 200) :]


def _related(field: Any, project: Project) -> Any:
    target = field.related_model
    if target is Project:
        return project
    if target is get_user_model():
        return target.objects.get_or_create(username=WORD)[0]
    if field.null:
        return None
    return first_of(target, project)
