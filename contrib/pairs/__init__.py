"""Answers of two systems side by side: comparisons, people's and judges' preferences, and how far they agree.

``making`` begins a comparison and is a person's way through it, ``judging`` a judge's, ``figures`` what came of it.
"""
