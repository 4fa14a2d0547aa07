"""Judges in the database: endpoints, keys, prices, pinned versions, preflight, shipped rubrics and profiles.

Used by others: ``clients.client_of``, ``secrets.key_of``, ``prices.price_table``, ``embeddings.embedder_of``,
``preflight.pin``, ``shipping.profile_row`` and ``definitions``.
"""
