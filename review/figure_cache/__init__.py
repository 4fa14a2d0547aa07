"""Cached figures of pages: reports, headlines, agreement, answers of a run, comparisons.

Builders compute figures, the store decides whether an entry is current, and selectors serve pages."""
