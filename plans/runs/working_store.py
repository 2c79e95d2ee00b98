"""The working store: raw values that execution needs, encrypted and short-lived.

Sealed under project, owner and name (`diagnostics.outbound.credentials`). Never shown,
never exported.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.outbound.credentials import WorkingKeyError, seal, unseal
from diagnostics.store.sql import delete_oldest
from plans.models.run import Owner, WorkingItem, owner_of

_PURGE_BATCH = 5_000


class WorkingItemMissingError(Exception):
    """The value was never stored, or has expired."""


UNREADABLE = (WorkingItemMissingError, WorkingKeyError)


def put(row: Owner, name: str, value: object) -> None:
    """Store a JSON value of a row under a name, replacing an earlier one."""
    put_all(row, {name: value})


def put_all(row: Owner, values: Mapping[str, object]) -> None:
    owner = owner_of(row)
    items = [
        WorkingItem(
            project_id=row.project_id,
            owner=owner,
            name=name,
            ciphertext=seal((row.project_id, owner, name), value),
        )
        for name, value in values.items()
    ]
    WorkingItem.objects.bulk_create(
        items,
        update_conflicts=True,
        update_fields=["ciphertext", "expires_at"],
        unique_fields=["project", "owner", "name"],
    )


def get(row: Owner, name: str) -> Any:  # noqa: ANN401 - any JSON
    values = get_named(row, [name])
    if name not in values:
        raise WorkingItemMissingError(f"{owner_of(row)} {name}")
    return values[name]


def get_all(row: Owner, prefix: str) -> dict[str, Any]:
    return _read(row, _items_of(row).filter(name__startswith=prefix))


def get_named(row: Owner, names: Collection[str]) -> dict[str, Any]:
    """Return the values of a row that exist under these names, by name."""
    return _read(row, _items_of(row).filter(name__in=names)) if names else {}


def _items_of(row: Owner) -> QuerySet[WorkingItem]:
    return WorkingItem.objects.filter(project_id=row.project_id, owner=owner_of(row))


def _read(row: Owner, items: QuerySet[WorkingItem]) -> dict[str, Any]:
    owner = owner_of(row)
    return {
        name: unseal((row.project_id, owner, name), bytes(ciphertext))
        for name, ciphertext in items.values_list("name", "ciphertext")
    }


def keep(row: Owner) -> None:
    """Keep the values of a resumed row until it ends again."""
    _items_of(row).update(expires_at=None)


def expire(row: Owner) -> None:
    """Set the expiry of the values of a row that has ended."""
    keep = timedelta(hours=settings.FAILSOFT_WORKING_KEEP_HOURS)
    _items_of(row).update(expires_at=DatabaseNow() + keep)


def purge_due(forget: Callable[[int, str], None] = lambda project_id, owner: None) -> int:
    """Delete expired values, the oldest first; return how many.

    `forget(project_id, owner)` is called first for each of their owners.
    """
    due = WorkingItem.objects.filter(expires_at__lte=clock.now())
    for owner in due.values_list("project_id", "owner").distinct():
        forget(*owner)
    return delete_oldest(due, "expires_at", _PURGE_BATCH)
