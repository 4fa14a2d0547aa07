"""Comparison of runs: differences, ranking, gates, trends, and the summaries on the home page."""
