"""The machine's half: questions, systems, judges, runs and scores. It never imports ``review``."""
