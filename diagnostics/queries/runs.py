"""The list of runs: what a selection keeps of them, newest first, page by page."""

from django.db.models import Q, QuerySet

from diagnostics.rest.cursors import read_cursor, write_cursor
from diagnostics.selection.conditions import matches, narrow_rows
from diagnostics.selection.query_language import Term, Word
from diagnostics.selection.selection import Selection
from diagnostics.store.run_models import AgentRun

FIELDS = (
    *("environment", "node", "provider", "model"),
    *("source", "release", "prompt_version", "correlation_id"),
)
"""What runs can be narrowed by; provider and model are those of the call that decides."""
SEARCHED = ("correlation_id", "provider", "model", "source")


def runs_of(project_id: int, selection: Selection) -> QuerySet[AgentRun]:
    """Return the runs of a project that meet a selection and began in its times, newest first."""
    runs = AgentRun.objects.filter(project_id=project_id)
    if selection.begin is not None:
        runs = runs.filter(began_at__gte=selection.begin)
    if selection.end is not None:
        runs = runs.filter(began_at__lt=selection.end)
    return narrow_rows(runs, selection, _condition, _condition_of_word).order_by(
        "-began_at", "-correlation_id"
    )


def page_of_runs(
    runs: QuerySet[AgentRun], limit: int, cursor: str | None
) -> tuple[list[AgentRun], str | None]:
    """Return one page and the cursor of the next; raises BadCursorError.

    Keyset on (began_at, correlation_id): stable while runs keep coming in.
    """
    if cursor:
        at, reference = read_cursor(cursor, str)
        after = Q(began_at__lt=at) | Q(began_at=at, correlation_id__lt=reference)
        runs = runs.filter(after, began_at__lte=at)
    found = list(runs[: limit + 1])
    if len(found) <= limit:
        return found, None
    last = found[limit - 1]
    return found[:limit], write_cursor(last.began_at, last.correlation_id)


def _condition(term: Term) -> Q:
    if term.field == "node":
        return Q(nodes__contains=[term.value])
    return matches(term.field, term)


def _condition_of_word(word: Word) -> Q:
    found = Q()
    for name in SEARCHED:
        found |= Q(**{f"{name}__icontains": word.text})
    return found
