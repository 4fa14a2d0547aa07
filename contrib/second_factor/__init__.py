"""Codes after the password, installed where ``CONCORD_SECOND_FACTOR`` asks for them."""
