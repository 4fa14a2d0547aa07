"""Answers of a run: list, one answer's page, search."""
