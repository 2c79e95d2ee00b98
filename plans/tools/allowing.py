"""Which tools a project may call: all that are registered, but those denied to it."""

import time

from django.contrib.auth.models import User

from diagnostics.clock import DatabaseNow
from plans.models import ProjectToolPolicy

# A change is seen by every process within this time.
_BELIEVED_SECONDS = 1.0
_read_at: dict[int, tuple[float, frozenset[str]]] = {}
_NEVER: tuple[float, frozenset[str]] = (float("-inf"), frozenset())


def denied_tools(project_id: int | None) -> frozenset[str]:
    """Return the names a project may not call; none outside of a project."""
    if project_id is None:
        return frozenset()
    read_at, denied = _read_at.get(project_id, _NEVER)
    if time.monotonic() - read_at < _BELIEVED_SECONDS:
        return denied
    rows = ProjectToolPolicy.objects.filter(project_id=project_id, allowed=False)
    denied = frozenset(rows.values_list("tool", flat=True))
    _read_at[project_id] = (time.monotonic(), denied)
    return denied


def set_allowed(project_id: int, tool: str, *, allowed: bool, by: User | None = None) -> None:
    """Let a project call a tool, or not; running steps are not stopped."""
    ProjectToolPolicy.objects.update_or_create(
        project_id=project_id,
        tool=tool,
        defaults={"allowed": allowed, "changed_by": by, "changed_at": DatabaseNow()},
    )
    _read_at.pop(project_id, None)
