"""Rule metrics, a file each, and the readings of text they share (Korean, numbers, keywords, citations).

Pure Python above ``core``. A metric gets question, answer and settings and returns a ``Result``, never a number for a
failure.

Door: ``catalogue.RULE_METRICS``.
"""
