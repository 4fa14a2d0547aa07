"""Runs: made from an answer set and a profile, drained, settled; their progress, costs and results.

Above ``scoring`` and ``criteria``.

Door: ``making.prepare_run``, ``answer_files.import_answers``, ``asking``, ``draining.drain``, ``progress.progress``,
``costs.Spending``, ``results.results``.
"""
