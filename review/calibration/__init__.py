"""Letting a version of a judge prompt prove itself on the hold-out of a gold set, without telling anything of it.

Above ``gold``.

Door: ``looking.accept`` and ``ask_for_look``; ``accepting.foresee``.
"""
