"""Guarded HTTP: allowed origins, deadlines, size limits, retries and pacing. Only this package opens connections.

No Django."""
