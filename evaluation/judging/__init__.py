"""Judging without Django: rubrics, prompts, reply parsing, formulas, embeddings and the offline baseline.

A judge gives verdicts; scores are computed here. Public: ``catalogue.family_for``, ``rubric.shipped_rubric``,
``prompt.judge_call`` and ``parse_reply``, ``providers.catalogue``, ``calls``."""
