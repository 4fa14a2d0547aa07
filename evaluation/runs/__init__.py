"""Runs: creation, answer files, planning, progress, costs, results."""
