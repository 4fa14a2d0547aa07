"""The back office of the machine's half."""

from evaluation.admin import criteria, people, runs, versions

__all__ = ["criteria", "people", "runs", "versions"]
