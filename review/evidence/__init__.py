"""Evidence on an answer: judge values, ratings, decisions, the effective value, and exposure of reviewers."""
