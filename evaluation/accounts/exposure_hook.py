"""Telling the human half that somebody was shown judges' values: the list of who is no longer blind is kept there.

The machine's half imports nothing of it, so the function is named by the setting ``CONCORD_VALUES_SHOWN``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import cast

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.utils.module_loading import import_string

from evaluation.models import User

Keeper = Callable[[User | AnonymousUser, Collection[int], str], None]


def values_shown(user: User | AnonymousUser, answer_ids: Collection[int], via: str) -> None:
    """Say that the person is about to see the judges' values of these answers; ``via`` names where, in a word."""
    cast(Keeper, import_string(settings.CONCORD_VALUES_SHOWN))(user, answer_ids, via)
