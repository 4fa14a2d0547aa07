"""Embedding metrics: the endpoint client, the interface of local models and the metrics. No Django.

Public: ``similarity.EmbeddingChoice``, ``Embedder`` and ``EMBEDDING_METRICS``."""
