"""Whether a prompt repeats material that it must not know: text of answers and questions, or ids of questions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

WORDS = 8  # consecutive words that count as a quotation
KOREAN_CHARACTERS = 20  # consecutive characters of text in Hangul that do
MOST_IDS = 2  # ids, or whole texts shorter than a quotation, that a prompt may name
SHORTEST = 3  # words of a text that counts where it is repeated as a whole
_WORD = re.compile(r"[^\W_]+")
_HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]")


class PromptText:
    """A prompt, prepared to look for many texts in it. Case, punctuation and spaces make no difference."""

    def __init__(self, text: str) -> None:
        self.text = _plain(text)
        words = _words(text)
        self.joined = f" {' '.join(words)} "
        self.runs = set(_runs(words))
        joined = "".join(words)
        self.pieces = (
            {
                joined[start : start + size]
                for size in range(KOREAN_CHARACTERS // 2, KOREAN_CHARACTERS + 1)
                for start in range(len(joined) - size + 1)
            }
            if _HANGUL.search(joined)
            else set()
        )

    def quotations(self, text: str) -> Iterator[str]:
        """The passages of a text that the prompt repeats."""
        words = _words(text)
        yield from (run for run in _runs(words) if run in self.runs)
        if self.pieces:
            yield from (piece for piece in _korean_pieces(" ".join(words)) if piece in self.pieces)

    def holds(self, text: str) -> bool:
        """Whether the prompt repeats a whole text that is too short to hold a quotation."""
        words = _words(text)
        return SHORTEST <= len(words) < WORDS and f" {' '.join(words)} " in self.joined

    def names(self, token: str) -> bool:
        """Whether the prompt holds an id as a whole token."""
        return bool(re.search(rf"(?<!\w){re.escape(_plain(token))}(?!\w)", self.text))


def repeats(
    prompt: str,
    texts: Collection[str],
    ids: Collection[str],
    *,
    shipped: str = "",
    levels: Collection[str] = (),
    open_texts: Iterable[str] = (),
) -> bool:
    """Whether a prompt holds eight consecutive words (of Korean 20 characters) of one of the texts, or three of the ids
    as whole tokens. Texts shorter than that count like ids.

    Not counted are the ``levels`` of scales, what the ``shipped`` prompt holds, and passages that are also in
    ``open_texts``: they tell nothing about the other texts."""
    looked_at, before = PromptText(prompt), PromptText(shipped)
    known = {_plain(one) for one in levels}
    named = {_plain(one) for one in ids if looked_at.names(one) and not before.names(one)} - known
    quoted = {passage for text in texts for passage in looked_at.quotations(text)}
    held = {" ".join(_words(text)) for text in texts if looked_at.holds(text)}
    for text in (shipped, *open_texts):
        if not quoted and not held:
            break
        other = PromptText(text)
        quoted -= other.runs | other.pieces
        held = {one for one in held if f" {one} " not in other.joined}
    return bool(quoted) or len(named) > MOST_IDS or len(held) > MOST_IDS


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _words(text: str) -> list[str]:
    return _WORD.findall(_plain(text))


def _runs(words: list[str]) -> Iterator[str]:
    return (" ".join(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1))


def _korean_pieces(text: str) -> Iterator[str]:
    """Windows of a text with single spaces that are Hangul for the most part, without their spaces."""
    for start in range(len(text) - KOREAN_CHARACTERS + 1):
        window = text[start : start + KOREAN_CHARACTERS]
        piece = window.replace(" ", "")
        if 2 * len(_HANGUL.findall(piece)) >= len(piece):
            yield piece
