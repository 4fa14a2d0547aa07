"""Agreement, correction, paired tests, precision and sampling: pure Python and numpy, no Django, no table.

Above ``evaluation.core``. Formulas and their sources stand in the docstrings; an undefined figure has a reason.

Door: ``agreement`` (one figure a function, ``catalogue``), ``correction.corrected``, ``paired_tests.paired``,
``precision``, ``sampling.draw``.
"""
