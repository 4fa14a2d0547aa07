"""Comparison of runs: differences, ranking, gates, trends, and the summaries on the home page.

Used by others: ``whole.compare``, ``gating.run_gate``, ``trend.load_trends``, ``summaries.headline``."""
