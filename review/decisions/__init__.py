"""Decisions of leads: overrides, adjudication of disputed answers, rulings on flags.

Used by others: ``overrides.override`` and ``revert``, ``cases.open_cases``, ``deciding.adjudicate``.
"""
