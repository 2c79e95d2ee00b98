"""Projects, members, keys, invitations, saved views, the audit log."""
