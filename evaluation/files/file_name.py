"""The name of an uploaded file is a text to show, never a path."""

from __future__ import annotations

import re
import unicodedata

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
LONGEST = 100


def display_name(name: str) -> str:
    """The last part of the name, composed (NFC), with invisible and direction-changing characters spelled out
    (``U+202E``) and at most 100 characters, the ending kept."""
    last = re.split(r"[\\/]", name)[-1].strip() or "file"
    composed = unicodedata.normalize("NFC", last)
    seen = "".join(f"U+{ord(c):04X}" if unicodedata.category(c) in _UNSEEN else c for c in composed)
    if len(seen) <= LONGEST:
        return seen
    return seen[: LONGEST - 21] + "…" + seen[-20:]


def ending(name: str) -> str:
    """The lower-case ending without its dot, empty where there is none."""
    _, dot, last = display_name(name).rpartition(".")
    return last.lower() if dot else ""
