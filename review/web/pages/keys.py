"""The keys of the review screen as its pages show them, and the page on which a person chooses them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evaluation.models import User
from review.ratings.keymap import CODES, DEFAULTS, ON_REVEAL, KeyAction, keys_from

TITLES = {
    KeyAction.NEXT: _("next criterion"),
    KeyAction.PREVIOUS: _("previous criterion"),
    KeyAction.CANNOT_JUDGE: _("cannot judge"),
    KeyAction.SKIP: _("skip: somebody else gets the item"),
    KeyAction.FLAG: _("flag: something is wrong with the item itself"),
    KeyAction.ESCALATE: _("escalate: hand the item to a lead"),
    KeyAction.COMMENT: _("comment"),
    KeyAction.SUGGEST: _("suggest a correct answer"),
    KeyAction.RUBRIC: _("show or hide the rubric"),
    KeyAction.REFERENCE: _("show or hide the expected answer"),
    KeyAction.RAW: _("answer as raw text"),
    KeyAction.PASSAGE_BEFORE: _("previous passage"),
    KeyAction.PASSAGE_AFTER: _("next passage"),
    KeyAction.UNDO: _("undo: take the last item back"),
    KeyAction.CHANGE: _("change my rating, when the judge is shown"),
}


@dataclass(frozen=True, slots=True)
class Keys:
    """The person's keys: ``labels`` by action as printed on the key, ``card`` and ``reveal`` as JSON for the scripts
    of the two screens (place on the keyboard -> action). ``off``: single keys are switched off."""

    labels: Mapping[str, str]
    lines: tuple[tuple[str, str], ...]
    card: str
    reveal: str
    off: bool


@dataclass(frozen=True, slots=True)
class KeysPage:
    """The page of keys: actions with their titles and the places chosen for them, and the labels of all places on the
    keyboard."""

    rows: tuple[tuple[KeyAction, str | Promise, str], ...]
    codes: Mapping[str, str]
    off: bool
    error: str


def keys_of(user: User) -> Keys:
    """The person's keys, for a page of theirs."""
    return _keys(tuple(keys_from(user.keymap).items()), user.keys_off, get_language())


@lru_cache(maxsize=256)
def _keys(of: tuple[tuple[KeyAction, str], ...], off: bool, _language: str | None) -> Keys:
    chosen = dict(of)
    return Keys(
        labels={str(action): CODES[code] for action, code in chosen.items()},
        lines=tuple((CODES[code], str(TITLES[action])) for action, code in chosen.items() if action not in ON_REVEAL),
        card=_as_json({code: str(action) for action, code in chosen.items() if action not in ON_REVEAL}),
        reveal=_as_json({code: str(action) for action, code in chosen.items() if action in ON_REVEAL}),
        off=off,
    )


def keys_page(user: User, *, entered: Mapping[str, str] | None = None, error: str = "") -> KeysPage:
    """The page with the person's keys, or with what a refused form held."""
    chosen = {str(action): code for action, code in keys_from(user.keymap).items()} | dict(entered or {})
    return KeysPage(
        rows=tuple((action, TITLES[action], chosen[str(action)]) for action in DEFAULTS),
        codes=CODES,
        off=user.keys_off,
        error=error,
    )


def _as_json(keys: Mapping[str, str]) -> str:
    return json.dumps(keys, sort_keys=True)
