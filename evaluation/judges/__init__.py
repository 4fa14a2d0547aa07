"""Judges in the database: endpoints, keys, prices, pinned versions, preflight, shipped rubrics and profiles."""
