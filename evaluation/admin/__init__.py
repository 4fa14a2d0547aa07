"""The back office of the machine's half."""

from evaluation.admin import endpoints, people, questions, runs, versions

__all__ = ["endpoints", "people", "questions", "runs", "versions"]
