"""The working store: what execution needs raw, encrypted and soon deleted.

Sealed under project, owner and name (`diagnostics.outbound.credentials`). Never shown,
never exported.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from diagnostics.clock import DatabaseNow
from diagnostics.outbound.credentials import seal, unseal
from diagnostics.store.retention import delete_oldest
from plans.models.run import WorkingItem

_PURGE_BATCH = 5_000


class WorkingItemMissingError(Exception):
    """The value was never stored, or its time is over."""


def put(project_id: int, owner: str, name: str, value: object) -> None:
    """Store a JSON value under (project, owner, name), replacing what stood there."""
    put_all(project_id, owner, {name: value})


def put_all(project_id: int, owner: str, values: Mapping[str, object]) -> None:
    """Store several values of one owner by name, replacing what stood there.

    Owners are `goal:<uuid>` and `run:<uuid>`; a value stays until its owner ends.
    """
    items = [
        WorkingItem(
            project_id=project_id,
            owner=owner,
            name=name,
            ciphertext=seal((project_id, owner, name), value),
        )
        for name, value in values.items()
    ]
    WorkingItem.objects.bulk_create(
        items,
        update_conflicts=True,
        update_fields=["ciphertext", "expires_at"],
        unique_fields=["project", "owner", "name"],
    )


def get(project_id: int, owner: str, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value; WorkingItemMissingError when there is none."""
    item = WorkingItem.objects.filter(project_id=project_id, owner=owner, name=name)
    ciphertext = item.values_list("ciphertext", flat=True).first()
    if ciphertext is None:
        raise WorkingItemMissingError(f"{owner} {name}")
    return unseal((project_id, owner, name), bytes(ciphertext))


def get_all(project_id: int, owner: str, prefix: str) -> dict[str, Any]:
    """Return the values of an owner whose names begin with `prefix`, by name."""
    items = WorkingItem.objects.filter(project_id=project_id, owner=owner, name__startswith=prefix)
    return _read(project_id, owner, items)


def get_named(project_id: int, owner: str, names: Collection[str]) -> dict[str, Any]:
    """Return the values of an owner that have these names and are there, by name."""
    if not names:
        return {}
    items = WorkingItem.objects.filter(project_id=project_id, owner=owner, name__in=names)
    return _read(project_id, owner, items)


def _read(project_id: int, owner: str, items: QuerySet[WorkingItem]) -> dict[str, Any]:
    return {
        name: unseal((project_id, owner, name), bytes(ciphertext))
        for name, ciphertext in items.values_list("name", "ciphertext")
    }


def keep(project_id: int, owner: str) -> None:
    """Let the values of an owner that goes on stay until it ends again."""
    items = WorkingItem.objects.filter(project_id=project_id, owner=owner)
    items.update(expires_at=None)


def expire(project_id: int, owner: str) -> None:
    """Let the values of an owner that has ended be deleted when their time is over."""
    keep = timedelta(hours=settings.FAILSOFT_WORKING_KEEP_HOURS)
    WorkingItem.objects.filter(project_id=project_id, owner=owner).update(
        expires_at=DatabaseNow() + keep
    )


def purge_due() -> int:
    """Delete values whose time is over, the oldest first; return how many."""
    due = WorkingItem.objects.filter(expires_at__lte=DatabaseNow())
    return delete_oldest(due, "expires_at", _PURGE_BATCH)
