"""The back office of the machine's half."""

from evaluation.admin import criteria, people, runs, systems, versions

__all__ = ["criteria", "people", "runs", "systems", "versions"]
