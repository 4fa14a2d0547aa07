"""People, roles, access to projects, tokens, log-in, the audit log."""
