"""Agreement of the judges of a run with experts, and variation between repeated judgements.

Used by others: ``run_agreement.agreement_of`` and ``kept_agreement``, ``answers``.
"""
