-- The failures of a window as JSON, up to `most`.
-- Parameters: project, since, until, ids, most, and those of what is seen.
SELECT row_to_json(found)::text FROM (
<<seen>>
) AS found LIMIT %(most)s
