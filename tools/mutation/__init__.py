"""Mutation tests of the pure packages: break one place, run the tests that should notice (``make mutate``)."""
