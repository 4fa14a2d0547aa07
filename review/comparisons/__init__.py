"""Several runs beside each other: differences, order, gates, trends, summaries of the home page, judges' records.

Above ``reports``.

Door: ``whole.compare``, ``gating.gate_of``, ``trend.trends_of``, ``summaries.headline``.
"""
