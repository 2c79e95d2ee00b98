"""What the tabs of a failure's page show: runs, history, why these belong together."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.badges import outcome_badge
from diagnostics.failures.counts import LONGEST_RUN, GroupQuestion
from diagnostics.failures.groups import Sample
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.failures.regrouping import Preview, Regrouping
from diagnostics.failures.states import MOST_PREVIEWED, preview_regrouping
from diagnostics.failures.wording import title_of
from diagnostics.figures import read_number
from diagnostics.store.models import Event
from diagnostics.web.access import ConsoleRequest

TABS: Mapping[str, str] = {
    "samples": "Samples",
    "runs": "Runs",
    "history": "History and comments",
    "why": "Grouping",
}
MOST_CHANGES = 200
DEEPEST = 20
MOST_WILD = 10
ENDS = ("succeeded", "degraded", "cancelled")


def read_tab(
    tab: str,
    request: ConsoleRequest,
    group: FailureGroup,
    samples: Sequence[Sample],
    question: GroupQuestion,
) -> Any:  # noqa: ANN401 - each tab has a template of its own
    """Read what a tab shows; the samples themselves are read for every tab."""
    reader = _READERS.get(tab)
    return reader(request, group, samples, question) if reader else None


def _runs(
    request: ConsoleRequest, _: FailureGroup, samples: Sequence[Sample], __: GroupQuestion
) -> list[Mapping[str, Any]]:
    """Return the runs that the latest failures hit, and how each ended as far as is known."""
    by_run: dict[tuple[str, int], list[Event]] = {}
    for event, _payload in samples:
        by_run.setdefault((event.correlation_id, event.cycle), []).append(event)
    ends = _ends(request.project.pk, [event for event, _ in samples])
    return [
        {
            "correlation_id": key[0],
            "cycle": key[1],
            "at": events[0].occurred_at,
            "model": events[0].model,
            "failures": len(events),
            "badge": outcome_badge(ends.get((*key, events[0].node))),
        }
        for key, events in by_run.items()
    ]


def _ends(project_id: int, failures: Sequence[Event]) -> Mapping[tuple[str, int, str], str]:
    """Return how the runs of some failures ended, the latest end of each."""
    if not failures:
        return {}
    times = [event.occurred_at for event in failures]
    ends = Event.objects.filter(
        project_id=project_id,
        correlation_id__in={event.correlation_id for event in failures},
        kind__in=ENDS,
        occurred_at__gte=min(times),
        occurred_at__lt=max(times) + LONGEST_RUN,
    ).order_by("occurred_at")
    return {
        (end.correlation_id, end.cycle, end.node): _outcome(end)
        for end in ends[: len(failures) * 20]
    }


def _outcome(end: Event) -> str:
    if end.unchecked or end.kind == "cancelled":
        return "unchecked" if end.unchecked else "cancelled"
    if end.kind == "succeeded":
        return "ok_first" if end.attempt == 1 else "repaired"
    known = {"circuit_open", "provider_failed", "budget_exhausted"}
    if end.reason in known:
        return end.reason or "degraded"
    return "stubbed" if end.status == "stubbed" else "degraded"


def _history(
    _: ConsoleRequest, group: FailureGroup, __: Sequence[Sample], ___: GroupQuestion
) -> list[GroupChange]:
    changes = group.changes.select_related("by").order_by("-at", "-pk")
    return list(changes[:MOST_CHANGES])


def _why(
    request: ConsoleRequest, group: FailureGroup, _: Sequence[Sample], question: GroupQuestion
) -> Mapping[str, Any]:
    """Return what made the fingerprint, and what another way of grouping would change."""
    depth = read_number(request.GET.get("depth"), 2)
    keys = (key.strip()[:100] for key in request.GET.get("wild", "")[:1_000].split(","))
    regrouping = Regrouping(
        ignores_schema=request.GET.get("ignore_schema") == "1",
        ignores_detail=request.GET.get("ignore_detail") == "1",
        pointer_depth=None if depth is None else min(depth, DEEPEST),
        wild_keys=tuple(key for key in keys if key)[:MOST_WILD],
    )
    shown: dict[str, Any] = {
        "parts": [
            ("node", group.node),
            ("schema", group.schema or "not set"),
            ("event kind", group.kind),
            ("error type", group.error_type),
            ("pointer", group.pointer or "whole output"),
            ("error detail", group.detail or "none"),
        ],
        "regrouping": regrouping,
        "wild": ", ".join(regrouping.wild_keys),
        "most": MOST_PREVIEWED,
    }
    if regrouping != Regrouping():
        preview = preview_regrouping(request.project.pk, regrouping, question.begin)
        split = list(preview.split.get(group.fingerprint, {}).items())
        shown |= {"preview": preview, "merged": _merged(group, preview), "split": split}
    return shown


def _merged(
    group: FailureGroup, preview: Preview
) -> list[tuple[str, list[tuple[FailureGroup, int]]]]:
    """Return the new kinds that take in this group, each with the groups of today in it."""
    mine = {kind: found for kind, found in preview.merged.items() if group.fingerprint in found}
    known = {
        one.fingerprint: one
        for one in FailureGroup.objects.filter(
            project_id=group.project_id,
            fingerprint__in={name for found in mine.values() for name in found},
        )
    }
    return [
        (
            title_of(kind.kind, kind.error_type, kind.pointer, kind.detail, kind.node),
            [(known[name], seen) for name, seen in found.items() if name in known],
        )
        for kind, found in mine.items()
    ]


_Reader = Callable[[ConsoleRequest, FailureGroup, Sequence[Sample], GroupQuestion], object]
_READERS: Mapping[str, _Reader] = {"runs": _runs, "history": _history, "why": _why}
