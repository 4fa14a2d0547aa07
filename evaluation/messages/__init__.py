"""Sentences for people: every code of a refusal, a reason, a problem in a file or a doubt in the reader's language.

Above ``core``; no table.

Door: ``messages.explain_refusal``, ``explain_reason`` and ``explain``; ``markdown.render`` (safe HTML of an answer),
``numbers`` (how figures are written).
"""
