"""Terms of a selection as conditions of SQL on the columns of series and versions."""

from collections.abc import Collection, Mapping, Sequence

from diagnostics.core.query_language import Term
from diagnostics.core.rollups import SERIES, VERSION

COLUMNS = frozenset((*SERIES, *VERSION))
TABLES: Mapping[str, Sequence[str]] = {"series": SERIES, "version": VERSION}
"""What rollup rows are counted by: the fields of each table."""
NARROWED = " AND {0}_id IN (SELECT id FROM diagnostics_{0} WHERE project_id = %(project)s {1})"


def terms_of(filters: Mapping[str, str | None]) -> list[Term]:
    """Give filters as terms; a value of None asks for null."""
    return [Term(name, value) for name, value in filters.items()]


def write_terms(
    terms: Sequence[Term],
    tables: Mapping[str, str] | None = None,
    among: Collection[str] = COLUMNS,
) -> str:
    """Write `AND ...` for each field; the values are the parameters `term_<place>`.

    Any of a field's positive terms must hold, and none of its negative ones. `tables`
    names the tables `series` and `version` where a bare column would be ambiguous;
    fields that are not `among` these are passed over.
    ValueError for a field that neither series nor versions have.
    """
    fields = dict.fromkeys(term.field for term in terms)
    if unknown := fields.keys() - COLUMNS:
        raise ValueError(f"rollups do not know {min(unknown)}")
    return " ".join(_write_field(name, terms, tables or {}) for name in fields if name in among)


def write_narrowing(terms: Sequence[Term]) -> str:
    """Write the terms as conditions on a rollup's own columns, series_id and version_id.

    So only what the terms keep is read, rather than all added up and dropped.
    """
    written = {table: write_terms(terms, among=TABLES[table]) for table in TABLES}
    return "".join(NARROWED.format(table, text) for table, text in written.items() if text)


def ask_terms(terms: Sequence[Term]) -> Mapping[str, str | None]:
    """Give the parameters that `write_terms` names."""
    return {f"term_{place}": _asked(term) for place, term in enumerate(terms)}


def _asked(term: Term) -> str | None:
    is_whole = term.is_exact or term.value is None
    return term.value if is_whole else (term.value or "").casefold()


def _write_field(name: str, terms: Sequence[Term], tables: Mapping[str, str]) -> str:
    table = tables.get("series" if name in SERIES else "version")
    column = f"{table}.{name}" if table else name
    mine = [(place, term) for place, term in enumerate(terms) if term.field == name]
    wanted = [_write_term(column, *item) for item in mine if not item[1].is_negated]
    refused = [_write_term(column, *item) for item in mine if item[1].is_negated]
    parts = [f"({' OR '.join(wanted)})"] if wanted else []
    parts += [f"NOT coalesce({text}, false)" for text in refused]
    return " ".join(f"AND {part}" for part in parts)


def _write_term(column: str, place: int, term: Term) -> str:
    if term.value is None or term.is_exact:
        return f"{column} IS NOT DISTINCT FROM %(term_{place})s"
    return f"strpos(lower({column}), %(term_{place})s) > 0"
