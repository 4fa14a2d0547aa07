"""From answers and replies to scores: sessions of calls, embeddings, rules, derived metrics, juries, writing.

Above ``judges``.

Door: ``judges.JudgeSession``, ``embeddings.EmbeddingSession``, ``deriving.score_rules`` and ``derive``,
``writing.counting``.
"""
