"""Guarded HTTP: allowed origins, deadlines, size limits, retries and pacing. Only this package opens connections.

No Django. Public: ``transport``, ``llm`` (OpenAI's format), ``origins``, ``outcomes`` (results of calls), ``retrying``,
``pool`` and ``pacing``."""
