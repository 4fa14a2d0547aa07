"""Optional features of the machine's half, each in a folder of its own.

The core imports none of them: what it asks of one stands in its ``hooks.FEATURE``, which ``CONCORD_EXTRAS`` names and
``evaluation/work/plugins.py`` looks up. Only entrances and ``config`` may import from here. Their tables stay in the
apps' ``models``, so that a database is the same with and without them.
"""
