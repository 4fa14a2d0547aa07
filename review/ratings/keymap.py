"""Keys of the review screen: what can be done by one, and which key of a closed list does it.

Keys are named by their place on the keyboard (``KeyboardEvent.code``), so that a Korean layout or input method changes
nothing. Digits, Enter, Escape and the question mark have fixed meanings and are not on the list.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from evaluation.core.errors import Refused


class KeyAction(StrEnum):
    """What a single key does. ``change`` belongs to the reveal, all others to the card."""

    NEXT = "next"
    PREVIOUS = "previous"
    CANNOT_JUDGE = "cannot_judge"
    SKIP = "skip"
    FLAG = "flag"
    ESCALATE = "escalate"
    COMMENT = "comment"
    SUGGEST = "suggest"
    RUBRIC = "rubric"
    REFERENCE = "reference"
    RAW = "raw"
    PASSAGE_BEFORE = "passage_before"
    PASSAGE_AFTER = "passage_after"
    UNDO = "undo"
    CHANGE = "change"


#: Every key that may be chosen, with what is printed on it.
CODES: dict[str, str] = {f"Key{letter}": letter.lower() for letter in string.ascii_uppercase} | {
    "BracketLeft": "[",
    "BracketRight": "]",
    "Semicolon": ";",
    "Quote": "'",
    "Comma": ",",
    "Period": ".",
    "Minus": "-",
    "Equal": "=",
    "Backquote": "`",
    "Backslash": "\\",
}

DEFAULTS: dict[KeyAction, str] = {
    KeyAction.NEXT: "KeyJ",
    KeyAction.PREVIOUS: "KeyK",
    KeyAction.CANNOT_JUDGE: "KeyX",
    KeyAction.SKIP: "KeyS",
    KeyAction.FLAG: "KeyF",
    KeyAction.ESCALATE: "KeyE",
    KeyAction.COMMENT: "KeyC",
    KeyAction.SUGGEST: "KeyG",
    KeyAction.RUBRIC: "KeyR",
    KeyAction.REFERENCE: "KeyA",
    KeyAction.RAW: "KeyM",
    KeyAction.PASSAGE_BEFORE: "BracketLeft",
    KeyAction.PASSAGE_AFTER: "BracketRight",
    KeyAction.UNDO: "KeyZ",
    KeyAction.CHANGE: "KeyE",
}
ON_REVEAL = frozenset({KeyAction.CHANGE})


def keys_from(stored: object) -> dict[KeyAction, str]:
    """The keys in use: the usual ones, changed as a person stored it. What is not on the list is passed over, so that
    nothing but a key of the list ever reaches a page."""
    own = stored if isinstance(stored, Mapping) else {}
    return {action: _known(own.get(action)) or code for action, code in DEFAULTS.items()}


def checked_keys(wanted: Mapping[str, str]) -> dict[str, str]:
    """What to store of a person's choice: the keys that differ from the usual ones.

    :raises Refused: ``unknown_key_action``, ``unknown_key`` for what is not on the closed lists, ``key_used_twice``.
    """
    if unknown := sorted(set(wanted) - set(KeyAction)):
        raise Refused("unknown_key_action", actions=unknown)
    if unknown := sorted(set(wanted.values()) - set(CODES)):
        raise Refused("unknown_key", keys=[code[:20] for code in unknown], known=list(CODES.values()))
    chosen = {action: wanted.get(action, code) for action, code in DEFAULTS.items()}
    used = Counter(code for action, code in chosen.items() if action not in ON_REVEAL)
    if twice := [CODES[code] for code, times in used.items() if times > 1]:
        raise Refused("key_used_twice", keys=twice)
    return {str(action): code for action, code in chosen.items() if code != DEFAULTS[action]}


def _known(code: object) -> str:
    """The key if it is on the list, else an empty text."""
    return code if isinstance(code, str) and code in CODES else ""
