"""Judging without Django: rubrics, prompts, reading of replies, formulas, embeddings, the offline baseline.

A judge gives verdicts; the figures are computed here. Used by others: ``catalogue.family_for``,
``rubric.shipped_rubric``, ``prompt.judge_call`` and ``hear``, ``providers.catalogue``, ``calls``.
"""
