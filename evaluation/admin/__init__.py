"""The back office of the machine's half."""

from evaluation.admin import corpora, criteria, people, runs, systems, versions

__all__ = ["corpora", "criteria", "people", "runs", "systems", "versions"]
