"""Scores of answers: judge calls, rules, embeddings, derived metrics, juries.

Used by others: ``judges.JudgeSession``, ``embeddings.EmbeddingSession``, ``rules.RuleScorer``,
``writing.derive_scores``."""
