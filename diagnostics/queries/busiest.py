"""Which series of a large project are judged: those with the most calls, and the most failures.

The number of series has no bound, and what a judgement costs grows with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from operator import itemgetter

from diagnostics.analysis.series import SeriesKey
from diagnostics.selection.conditions import term_params, write_narrowing, write_terms
from diagnostics.selection.query_language import Term
from diagnostics.store.models import Series
from diagnostics.store.rollups import FAILURE_KINDS, SERIES
from diagnostics.store.sql import fetch
from diagnostics.store.windows import WIDTHS, Grain, floor

MOST_JUDGED, MOST_WORST = 1_000, 300
"""The busiest series of a large project that are judged; those with the most failures beside."""
DAY = WIDTHS[Grain.DAY]
_FAILED = " + ".join(f"coalesce(sum({name}), 0)" for name in ("degraded", *FAILURE_KINDS))
COUNT = f"""
SELECT series_id, sum(events), {_FAILED} FROM diagnostics_rollup_day
WHERE project_id = %(project)s AND bucket >= %(since)s AND bucket < %(until)s
"""  # noqa: S608 - our own names
NEXT = "SELECT id FROM diagnostics_series WHERE project_id = %(project)s AND id > %(last)s "
IDS = """
SELECT id FROM diagnostics_series
WHERE project_id = %(project)s AND key IN (
    SELECT md5(json_build_array(environment, node, provider, model)::text)::uuid
    FROM unnest(
        %(environment)s::text[], %(node)s::text[], %(provider)s::text[], %(model)s::text[]
    ) AS asked (environment, node, provider, model)
)
"""


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """The ids of the busiest and of the worst series, and how many others had calls."""

    busiest: Sequence[int]
    worst: Sequence[int]
    left_out: int

    @property
    def chosen(self) -> Sequence[int]:
        return list(dict.fromkeys((*self.busiest, *self.worst)))


def is_large(project_id: int) -> bool:
    more = Series.objects.filter(project_id=project_id).order_by()[MOST_JUDGED : MOST_JUDGED + 1]
    return more.exists()


def choose_series(
    project_id: int, terms: Sequence[Term], since: datetime, until: datetime
) -> SeriesChoice | None:
    """Return the series to judge by their calls on the days of a range; None for all of them."""
    if not is_large(project_id):
        return None
    parameters = {"project": project_id, "since": floor(since, DAY), "until": until}
    text = f"{COUNT}{write_narrowing(terms)} GROUP BY 1 ORDER BY 1"
    counted = fetch(text, {**parameters, **term_params(terms)})
    busiest = [row[0] for row in nlargest(MOST_JUDGED, counted, key=itemgetter(1))]
    worst = [row[0] for row in nlargest(MOST_WORST, counted, key=itemgetter(2)) if row[2]]
    return SeriesChoice(busiest, worst, len(counted) - len({*busiest, *worst}))


def ids_of(project_id: int, keys: Iterable[SeriesKey]) -> list[int]:
    columns = zip(*keys, strict=True)
    by_name = {name: list(values) for name, values in zip(SERIES, columns, strict=False)}
    if not by_name:
        return []
    return [identifier for (identifier,) in fetch(IDS, {"project": project_id, **by_name})]


def next_series(project_id: int, terms: Sequence[Term], last: int, limit: int) -> list[int]:
    """Return the ids of a project's series after an id, in order."""
    parameters = {"project": project_id, "last": last, "limit": limit, **term_params(terms)}
    text = f"{NEXT}{write_terms(terms)} ORDER BY id LIMIT %(limit)s"
    return [identifier for (identifier,) in fetch(text, parameters)]
