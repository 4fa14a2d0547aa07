"""What follows from ratings: agreement of a run (and its cache), consistency, variation, an answer's history.

Above ``ratings``.

Door: ``run_agreement.agreement_of`` and ``kept_agreement``, ``answers``.
"""
