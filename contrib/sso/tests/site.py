"""Addresses of single sign-on, for the tests of the core that walk all of them."""

from __future__ import annotations

from tests.access_rules import ANYONE, LOGGED_IN

RULES = {
    ("POST", "sso-start"): ANYONE,
    ("GET", "sso-callback"): "no no no no no no no no",  # nobody was sent there
    ("GET", "sso"): LOGGED_IN,
    ("POST", "sso-link"): LOGGED_IN,
    ("POST", "sso-unlink"): LOGGED_IN,
}
