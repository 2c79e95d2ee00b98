-- How many failures of a window there are, up to `most`.
-- Parameters: project, since, until, ids, most, and those of what is seen.
SELECT count(*) FROM (SELECT FROM (
<<seen>>
) AS found LIMIT %(most)s) AS newest
