"""Judging without Django: rubrics, prompts, reply parsing, formulas, embeddings and the offline baseline.

A judge gives verdicts; scores are computed here."""
