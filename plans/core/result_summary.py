"""The `__meta__` entry, checked by itself (S2-27, S2-28, S2-37, S2-38)."""

from typing import Any

from plans.core.contract import TaskStatus
from plans.core.result_rows import check_boolean, check_keys, check_text
from plans.core.violations import Violations, kind_of

_META_KEYS = (
    "ok",
    "skipped",
    "reason",
    "task_status",
    "stats",
    "blocked_steps",
    "failed_steps",
)
COUNTS = ("total_steps", "ok", "skipped", "failed")
# Far beyond any plan, and short enough to be written out.
_LARGEST_COUNT = 10**12


def check_meta(path: str, meta: dict[str, Any], found: Violations) -> None:
    """Check the shape of the summary; whether it is true is asked elsewhere."""
    check_keys(path, meta, _META_KEYS, found)
    check_boolean(path, meta, "ok", found)
    check_boolean(path, meta, "skipped", found)
    check_text(path, meta, "reason", found)
    if meta.get("skipped") is True:
        found.add(
            f"{path}/skipped",
            "meta_skipped",
            "expected false: a summary is never skipped",
        )
    status = meta.get("task_status")
    known = [item.value for item in TaskStatus]
    if "task_status" in meta and not (isinstance(status, str) and status in known):
        found.add(
            f"{path}/task_status",
            "task_status_unknown",
            f"expected one of {', '.join(known)}",
        )
    if "stats" in meta:
        _check_stats(f"{path}/stats", meta["stats"], found)
    for key in ("blocked_steps", "failed_steps"):
        _check_ids(path, meta, key, found)


def _check_stats(path: str, stats: object, found: Violations) -> None:
    if not isinstance(stats, dict):
        found.add(path, "stats_type", f"expected an object of counts, got {kind_of(stats)}")
        return
    before = len(found)
    check_keys(path, stats, COUNTS, found)
    for key in COUNTS:
        count = stats.get(key)
        if key in stats and not _is_count(count):
            found.add(
                f"{path}/{key}",
                "count_type",
                f"expected a whole number from 0, got {kind_of(count)}",
            )
    if len(found) == before:
        total = stats["ok"] + stats["skipped"] + stats["failed"]
        if total != stats["total_steps"]:
            found.add(
                path,
                "stats_sum",
                f"expected the counts to add up to {stats['total_steps']}, got {total}",
            )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT


def _check_ids(path: str, meta: dict[str, Any], key: str, found: Violations) -> None:
    ids = meta.get(key, [])
    if not isinstance(ids, list):
        found.add(
            f"{path}/{key}",
            f"{key}_type",
            f"expected an array of step ids, got {kind_of(ids)}",
        )
        return
    for place, step_id in enumerate(ids):
        if not isinstance(step_id, str):
            found.add(
                f"{path}/{key}/{place}",
                f"{key}_type",
                f"expected a step id, got {kind_of(step_id)}",
            )
