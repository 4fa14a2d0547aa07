"""Judges as the site keeps them: endpoints, keys, prices, pinned versions, checks, shipped rubrics and profiles.

Above ``work`` (a check is a single call with a share of the endpoint's limits).

Door: ``clients.client_of``, ``secrets.key_of``, ``prices.price_table``, ``embeddings.embedder_of``, ``preflight.pin``,
``shipping.profile_row``, ``shipping.definitions``.
"""
