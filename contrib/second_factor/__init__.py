"""Codes after the password; installed if ``CONCORD_SECOND_FACTOR`` requires them."""
