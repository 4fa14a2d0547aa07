"""Runs: creation, answer files, planning, progress, costs, results.

Used by others: ``making.prepare_run`` and ``launch_run``, ``answer_files.import_answers``, ``draining.drain``,
``progress.progress``, ``results.run_figures``."""
