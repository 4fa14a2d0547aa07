"""Runs: made from an answer set and a profile, drained, settled; their progress, costs and results.

Above ``scoring`` and ``criteria``.

Door: ``making.prepare_run`` and ``ask_for_run``, ``answer_files.import_answers``, ``draining.drain``,
``progress.progress`` and ``Spending``, ``results.figures``.
"""
