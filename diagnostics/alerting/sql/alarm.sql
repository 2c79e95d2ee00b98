-- What the banner of every page needs to know of a project.
SELECT failsoft_now(),
       (SELECT at FROM diagnostics_heartbeat WHERE name = %(heartbeat)s),
       (SELECT created_at FROM diagnostics_project WHERE id = %(project)s),
       (SELECT judged_at FROM diagnostics_projectturn WHERE project_id = %(project)s),
       (SELECT array_to_string(passed_over, ', ') FROM diagnostics_projectturn
        WHERE project_id = %(project)s),
       (SELECT count(*) FROM diagnostics_notification
        WHERE project_id = %(project)s AND state = 'failed' AND seen_at IS NULL),
       (SELECT count(*) FROM diagnostics_notification AS n
        JOIN diagnostics_channel AS c ON c.id = n.channel_id
        WHERE n.project_id = %(project)s AND n.state = 'queued' AND c.enabled
            AND c.failing_since IS NULL
            AND n.next_attempt_at < failsoft_now() - %(overdue)s),
       (SELECT count(*) FROM diagnostics_notification AS n
        JOIN diagnostics_channel AS c ON c.id = n.channel_id
        WHERE n.project_id = %(project)s AND n.state = 'queued' AND c.enabled
            AND c.failing_since < failsoft_now() - %(overdue)s),
       (SELECT count(*) FROM diagnostics_reportdelivery
        WHERE project_id = %(project)s AND state = 'failed'
            AND created_at > failsoft_now() - %(a_day)s),
       (SELECT count(*) FROM diagnostics_incident
        WHERE project_id = %(project)s AND cleared_at IS NULL)
