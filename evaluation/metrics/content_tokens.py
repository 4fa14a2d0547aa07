"""The words of a text that carry content, in order: for finding passages that an answer draws on."""

from __future__ import annotations

import re
from functools import lru_cache

from evaluation.metrics.korean import is_particle_chain
from evaluation.metrics.normalise import folded

_WORD = re.compile(r"[가-힣]+|[^\W_가-힣]+")
_STOP_WORDS_LIST = (
    "a an the of in on at to for from by with and or but is are was were be been being it its this that these "
    "those as into than then there their they he she his her him has have had do does did will would can "
    "could should may not which who what when where why how also 그 이 저 것 수 등 및 또 때 또는 그리고 "
    "그러나 따라서 대한 대해 대하여 위한 통해 경우 있다 있는 있습니다 한다 하는 합니다 됩니다 된다 되는 없는 "
    "없습니다 없다"
)
_STOP_WORDS = frozenset(_STOP_WORDS_LIST.split())


def content_tokens(text: str) -> tuple[str, ...]:
    """The folded words without function words; Hangul without particles, by the closed list."""
    words = (_stem(match[0]) for match in _WORD.finditer(folded(text)))
    return tuple(word for word in words if word not in _STOP_WORDS)


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    """The word without its chain of particles, where two syllables or more remain."""
    if not "가" <= word[0] <= "힣":
        return word
    for cut in range(2, len(word)):
        if is_particle_chain(word[cut - 1], word[cut:]):
            return word[:cut]
    return word
