"""Profiles: weights, thresholds and arithmetic of the overall score, shipped as YAML.

Only ``admin`` and ``api`` use Django. Used by others: ``spec.ProfileSpec``, ``arithmetic``,
``per_answer.AnswerOverall`` and ``DERIVED_METRICS``."""
