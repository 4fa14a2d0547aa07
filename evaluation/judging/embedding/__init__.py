"""Embedding metrics: the endpoint client, the interface of local models and the metrics. No Django."""
