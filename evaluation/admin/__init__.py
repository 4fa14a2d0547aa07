"""The back office of the machine's half."""

from evaluation.systems import admin as systems_admin

__all__ = ["corpora", "criteria", "people", "runs", "systems", "versions"]
