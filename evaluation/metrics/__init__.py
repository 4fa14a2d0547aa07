"""Rule metrics, one file each, and the text normalisation they share. No Django.

A metric gets question, answer and settings and returns a ``Result``, never a number for a failure. Used by others:
``catalogue.RULE_METRICS``.
"""
