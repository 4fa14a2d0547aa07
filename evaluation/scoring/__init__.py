"""Scores of answers: judge calls, rules, embeddings, derived metrics, juries."""
