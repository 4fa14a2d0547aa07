"""Webhooks: signed messages about runs, gates, queues and judges to the addresses of a project."""
