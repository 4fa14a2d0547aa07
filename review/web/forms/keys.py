"""The keys as their form sends them."""

from __future__ import annotations

from django.http import QueryDict

from review.ratings.keymap import DEFAULTS


def read_keys(data: QueryDict) -> dict[str, str]:
    """The chosen key of every action that the form holds."""
    found = {str(action): data.get(f"key:{action}", "") for action in DEFAULTS}
    return {action: code for action, code in found.items() if code}
