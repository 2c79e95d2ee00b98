-- The values that the columns of series and versions have in a project, newest first.
(SELECT 'environment', environment FROM diagnostics_series WHERE project_id = %(project_id)s
 GROUP BY environment ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'node', node FROM diagnostics_series WHERE project_id = %(project_id)s
 GROUP BY node ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'provider', provider FROM diagnostics_series WHERE project_id = %(project_id)s
 GROUP BY provider ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'model', model FROM diagnostics_series WHERE project_id = %(project_id)s
 GROUP BY model ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'source', source FROM diagnostics_version WHERE project_id = %(project_id)s
 GROUP BY source ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'prompt_version', prompt_version FROM diagnostics_version WHERE project_id = %(project_id)s
 GROUP BY prompt_version ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'schema', schema FROM diagnostics_version WHERE project_id = %(project_id)s
 GROUP BY schema ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'release', release FROM diagnostics_version WHERE project_id = %(project_id)s
 GROUP BY release ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'served', served FROM diagnostics_version WHERE project_id = %(project_id)s
 GROUP BY served ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'region', region FROM diagnostics_version WHERE project_id = %(project_id)s
 GROUP BY region ORDER BY max(first_seen) DESC LIMIT %(most)s)
UNION ALL
(SELECT 'credential', credential FROM diagnostics_version WHERE project_id = %(project_id)s
 GROUP BY credential ORDER BY max(first_seen) DESC LIMIT %(most)s)
