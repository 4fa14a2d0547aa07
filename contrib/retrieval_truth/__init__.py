"""Retrieval truth that experts repair: a pool of what several systems retrieved, blind ratings of a sample of it, and
corrected figures. ``pooling`` makes a repair, ``rating`` is a person's way through it, ``results`` what came of it,
``accepting`` takes its labels over into the question set.
"""
