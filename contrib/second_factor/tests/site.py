"""Addresses of the second factor, for the tests of the core that walk all of them."""

from __future__ import annotations

from tests.access_rules import ANYONE, LOGGED_IN

RULES = {
    ("GET", "second-factor-code"): ANYONE,  # sent to log in, where nobody has given a password
    ("POST", "second-factor-code"): ANYONE,
    ("GET", "second-factor"): LOGGED_IN,
    ("POST", "second-factor-set-up"): LOGGED_IN,
    ("POST", "second-factor-codes"): LOGGED_IN,
    ("POST", "second-factor-remove"): LOGGED_IN,
}
