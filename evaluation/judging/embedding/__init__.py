"""Similarity of meaning: the endpoint's client, local models, and the metrics made of vectors. No Django, no table.

Above ``judging``, whose transport it uses.

Door: ``similarity.EmbeddingChoice``, ``Embedder`` and ``EMBEDDING_METRICS``.
"""
