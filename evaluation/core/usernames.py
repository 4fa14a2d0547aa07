"""User names that look alike."""

from __future__ import annotations

import unicodedata

# Hangul fillers are letters without a shape; NFKC replaces the other two by the second.
_FILLERS = {"\u115f", "\u1160"}
# Scripts with letters that look like letters of another of them.
_ALIKE = {"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE"}


def username_key(name: str) -> str:
    """Equal for names that differ only in case, width, composition or invisible characters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(char for char in folded if char not in _FILLERS and unicodedata.category(char)[0] != "C")


def mixes_scripts(name: str) -> bool:
    """Return whether letters of the name may pass for those of another script; Hangul with Latin does not count."""
    normalized = unicodedata.normalize("NFKC", name)
    return len({unicodedata.name(char, "").partition(" ")[0] for char in normalized} & _ALIKE) > 1
