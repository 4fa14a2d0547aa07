"""Judges in the database: endpoints, keys, prices, pinned versions, preflight, shipped rubrics and profiles.

Public: ``clients.client_of``, ``secrets.key_of``, ``prices.price_table``, ``embeddings.embedder_of``,
``preflight.pin_judge``, ``shipping.profile_row`` and ``definitions``."""
