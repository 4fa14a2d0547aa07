"""Parts that all REST modules share: endpoints, requests, filters, errors, idempotency keys."""
