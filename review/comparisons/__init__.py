"""Comparison of runs: differences, ranking, gates, trends, and the summaries on the home page.

Used by others: ``whole.compare``, ``gating.gate_of``, ``trend.trends_of``, ``summaries.headline``.
"""
