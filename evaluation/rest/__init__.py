"""Shared parts of the REST modules: endpoints, requests, filters, errors, idempotency keys."""
