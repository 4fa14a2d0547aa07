"""Agreement, correction, paired tests, precision and sampling, in pure Python and numpy. No Django.

Formulas and sources are in the docstrings; an undefined figure has a reason. Used by others: ``agreement``,
``correction.corrected``, ``paired_tests.paired``, ``precision``, ``sampling.draw``.
"""
