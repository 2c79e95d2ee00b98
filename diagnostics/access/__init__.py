"""Who may do what: projects, keys, members, the audit log, saved views."""
