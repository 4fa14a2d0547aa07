"""The practice of a new reviewer: ten answers with the ratings their authors would give, and what differs from them.

``items`` is pure, ``views`` keeps how far a person is and shows it; nothing of it enters any figure.
"""
