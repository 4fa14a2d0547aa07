"""Similarity of meaning: the endpoint's client, local models, and the metrics made of vectors. No Django, no table.

Above ``judging``, whose transport it uses.

Door: ``choice.EmbeddingChoice``, ``protocol.Embedder``, ``catalogue.EMBEDDING_METRICS``.
"""
