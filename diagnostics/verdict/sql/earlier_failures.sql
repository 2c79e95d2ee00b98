-- Where failures of one kind were in a window: pointer and sort of fault, or tool.
-- The reader fills in the segments. Parameters: project, kind, error_type, those of the
-- segments and filters.
SELECT kept.pointer, kept.detail, sum(counted.seen)::bigint
FROM diagnostics_failuregroup AS kept
JOIN (
<<counted>>
) AS counted ON counted.group_id = kept.id
JOIN diagnostics_series AS series ON series.id = counted.series_id
WHERE kept.project_id = %(project)s
    AND kept.kind = %(kind)s
    AND kept.error_type = %(error_type)s
    <<terms>>
GROUP BY 1, 2
