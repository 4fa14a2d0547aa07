"""Profiles: weights, thresholds and arithmetic of the overall score, shipped as YAML.

No Django but in ``admin`` and ``api``. Used by others: ``spec.ProfileSpec``, ``arithmetic``,
``per_answer.AnswerOverall`` and ``DERIVED_METRICS``.
"""
