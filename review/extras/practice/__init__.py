"""The practice of a new reviewer: ten answers with the ratings their authors would give, and what differs from them.

``items`` and ``feedback`` are pure, ``progress`` keeps how far a person is; nothing of it enters any figure.
"""
