"""The practice of a new reviewer: ten answers with the ratings their authors would give, and what differs from them."""
