"""Cached figures that pages read: reports, headlines, agreement, answers of a run, comparisons.

``making`` computes each, ``keeping`` decides whether a cached figure is current, ``reading`` serves pages.
"""
