"""Sentences for codes of refusals, reasons, file problems and doubts, in English and Korean.

Used by others: ``sentences.explain_refusal``, ``explain_reason`` and ``explain``; ``markdown.render`` (safe HTML of an
answer); ``numbers`` (how figures are written).
"""
