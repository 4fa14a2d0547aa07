"""Judges as the site keeps them: endpoints, keys, prices, pinned versions, checks, shipped rubrics and profiles.

Above ``work`` (a check is a single call with a share of the endpoint's limits).

Door: ``clients.client_of``, ``clients.price_table``, ``shipping.profile_row``, ``shipping.definitions``,
``clients.pin``.
"""
