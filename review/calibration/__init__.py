"""Letting a version of a judge prompt prove itself on the hold-out of a gold set, without telling anything of it.

Above ``gold``.

Door: ``accepting.accept`` and ``foresee``.
"""
