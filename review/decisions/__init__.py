"""What leads decide: overrides, adjudication of disputed answers, rulings on flags, amendments.

Above ``ratings``.

Door: ``overrides.override`` and ``revert``, ``cases.open_cases``, ``deciding.adjudicate``.
"""
