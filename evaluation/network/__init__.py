"""Guarded HTTP: allowed origins, deadlines, size limits, retries, pacing. Only this package opens connections.

No Django. Used by others: ``transport``, ``llm`` (OpenAI's format), ``origins``, ``outcomes`` (how a call ended),
``retrying``, ``pool`` and ``pacing``.
"""
