"""Similarity of meaning: the endpoint's client, local models, and the metrics made of vectors. No Django, no table.

Above ``judging``, whose transport it uses.

Door: ``protocol.EmbeddingChoice`` and ``Embedder``, ``similarity.EMBEDDING_METRICS``.
"""
