"""The fix patterns that put answers of one kind of failure right."""

from collections.abc import Sequence

from agents.fix_reading import known_patterns, rules_of
from agents.views.fix_patterns import PatternRow, pattern_row
from diagnostics.core.fingerprints import normalise_pointer
from diagnostics.models import FailureGroup


def patterns_of(project_id: int, group: FailureGroup) -> Sequence[PatternRow]:
    """Give the patterns of the same schema, type of error and place."""
    if group.kind != "parse_invalid" or not group.schema:
        return []
    known = known_patterns(project_id, rules_of(project_id))
    return [
        pattern_row(one)
        for one in known
        if one.row.schema == group.schema
        and one.row.error_class == group.error_type
        and normalise_pointer(one.row.pointer) == group.pointer
    ]
