"""Question sets, systems, judges, runs and scores. Never imports ``review``."""
