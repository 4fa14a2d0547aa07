"""Profiles: which metrics count with which weight, thresholds and arithmetic of the overall score; shipped as YAML.

Pure Python above ``core``.

Door: ``spec.ProfileSpec``, ``arithmetic``, ``per_answer.AnswerOverall``, ``arithmetic.Passing``,
``per_answer.DERIVED_METRICS`` (metrics made of other metrics).
"""
