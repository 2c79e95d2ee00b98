"""Every page of the console, found by walking the resolver and asking.

What is answered with HTML is a page. A parameter is given what the project has: a new
kind of parameter needs a line in SAMPLES, and the walk says so.
"""

from collections.abc import Callable, Iterator
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.test import Client

from diagnostics.accounts.models import Project
from tests.security.addresses import Address, all_addresses

NOT_PAGES = (
    "api/",
    "v1/",
    "mcp",
    "packages/",
    "export/",
    "admin/",
    "accounts/",
    "metrics",
    "healthz",
    "readyz",
)
ANSWERED, NOT_ALLOWED, FAULT = 200, 405, 500
Sample = Callable[[Project], Any]


class NoSampleError(LookupError):
    """nothing says what a parameter of an address stands for"""


def newest(label: str, field: str = "pk", *, by: str = "pk", **filters: Any) -> Sample:
    """Give a field of the project's latest row of a model, or None."""

    def find(project: Project) -> Any:
        model: type[Model] = apps.get_model(label)
        rows = model._default_manager.filter(project=project, **filters)
        return rows.order_by(f"-{by}").values_list(field, flat=True).first()

    return find


SAMPLES: dict[str, Sample] = {
    "reference": newest("agents.Goal", "correlation_id"),
    "goal_id": newest("agents.Goal"),
    "run_id": newest("plans.Run"),
    "group_id": newest("diagnostics.FailureGroup", by="last_seen"),
    "provider": newest("diagnostics.Series", "provider", provider__isnull=False),
    "name": newest("diagnostics.Series", "model", provider__isnull=False),
    "token": lambda project: None,
}
"""What a parameter is given, by its name."""
ONE_USE = {"token"}
"""Signed, for one use, and tried where they are made."""
BY_ROUTE: dict[str, Sample] = {
    "incidents/": newest("diagnostics.Incident"),
    "alerts/rules/": newest("diagnostics.AlertRule"),
    "alerts/channels/": newest("diagnostics.Channel"),
    "reports/subscriptions/": newest("diagnostics.Subscription"),
    "reports/": newest("diagnostics.Report"),
    "settings/providers/": newest("agents.Provider"),
}
"""What the one parameter of an address is given, where its name says too little."""
# What no row is known by: an address that looks it up answers 404, one that only acts 405.
DUMMIES = {"int": "1", "uuid": "00000000-0000-7000-8000-000000000000"}


def console_pages(client: Client, project: Project) -> list[str]:
    """Give the paths of all pages that a signed-in client is shown, in the walk's order.

    Pages of rows that the project has none of are left out. Raises NoSampleError.
    """
    return [path for path in _paths(client, project) if _is_page(client, path)]


def unasked(client: Client, project: Project) -> set[str]:
    """Give the routes of pages whose rows the project has none of, so that nobody asks them."""
    return {
        address.route
        for address in _addresses(client)
        if not {*address.names} & ONE_USE
        and None in [_sample(address, name, project) for name in address.names]
    }


def _paths(client: Client, project: Project) -> Iterator[str]:
    for address in _addresses(client):
        values = {name: _sample(address, name, project) for name in address.names}
        if None not in values.values():
            yield address.path(**{name: str(found) for name, found in values.items()})


def _addresses(client: Client) -> Iterator[Address]:
    for address in all_addresses():
        if address.route.startswith(NOT_PAGES):
            continue
        # Without a parameter, the page itself is asked.
        if not address.names or not _only_acts(client, address):
            yield address


def _only_acts(client: Client, address: Address) -> bool:
    dummies = {
        name: next((d for kind, d in DUMMIES.items() if f"<{kind}:{name}>" in address.route), "x")
        for name in address.names
    }
    return client.get(address.path(**dummies)).status_code == NOT_ALLOWED


def _sample(address: Address, name: str, project: Project) -> Any:
    for prefix, sample in BY_ROUTE.items():
        if address.route.startswith(prefix):
            return sample(project)
    if name not in SAMPLES:
        raise NoSampleError(f"{address.route}: no sample for {name}")
    return SAMPLES[name](project)


def _is_page(client: Client, path: str) -> bool:
    answer = client.get(path)
    assert answer.status_code < FAULT, f"{path} answers {answer.status_code}"
    is_html = answer.get("Content-Type", "").startswith("text/html")
    # A mail in its frame is no page: no script runs there, not even the checker's.
    is_framed = "sandbox" in answer.get("Content-Security-Policy", "")
    return answer.status_code == ANSWERED and is_html and not is_framed
