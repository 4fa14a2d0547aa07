"""Optional features of the human half, each in a folder of its own: logic, pages, forms, views, REST and addresses.

The core imports none of them: what it asks of one stands in its ``hooks.EXTRA``, which ``CONCORD_EXTRAS`` names and
``evaluation/work/plugins.py`` looks up. Only entrances and ``config`` may import from here. Their tables stay in
``review/models``, so that a database is the same with and without them.
"""
