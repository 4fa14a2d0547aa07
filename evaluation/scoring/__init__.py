"""From answers and replies to scores: sessions of calls, embeddings, rules, derived metrics, juries, writing.

Above ``judges``.

Door: ``judges.JudgeSession``, ``embeddings.EmbeddingSession``, ``rules.Rules``, ``writing.derive`` and
``counting``.
"""
