"""Gold sets: experts' blind first ratings frozen as labels, split once for good, and kept against change.

Above ``evidence``.

Door: ``freezing.freeze`` and ``grow``, ``overview``.
"""
