"""Detection of leaked evaluation material in prompts: texts of answers and questions, or question ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

# Consecutive words that count as a quotation.
QUOTATION_WORDS = 8
# Consecutive characters of Korean text that count as a quotation.
QUOTATION_CHARACTERS = 20
# Ids, or whole texts shorter than a quotation, that a prompt may contain.
MAX_IDS = 2
# Minimum words of a text that counts if repeated as a whole.
MIN_WORDS = 3
_WORD = re.compile(r"[^\W_]+")
_HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]")


class PromptText:
    """Prompt indexed for searching many texts. Case, punctuation and spaces are ignored."""

    def __init__(self, text: str) -> None:
        self.text = _normalize(text)
        words = _words(text)
        self.spaced_words = f" {' '.join(words)} "
        self.word_runs = set(_runs(words))
        letters = "".join(words)
        self.korean_windows = (
            {
                letters[start : start + size]
                for size in range(QUOTATION_CHARACTERS // 2, QUOTATION_CHARACTERS + 1)
                for start in range(len(letters) - size + 1)
            }
            if _HANGUL.search(letters)
            else set()
        )

    def quotations(self, text: str) -> Iterator[str]:
        """Passages of a text that the prompt repeats."""
        words = _words(text)
        yield from (words_quoted for words_quoted in _runs(words) if words_quoted in self.word_runs)
        if self.korean_windows:
            yield from (piece for piece in _korean_pieces(" ".join(words)) if piece in self.korean_windows)

    def repeats_short_text(self, text: str) -> bool:
        """Return whether the prompt repeats a whole text that is shorter than a quotation."""
        words = _words(text)
        return MIN_WORDS <= len(words) < QUOTATION_WORDS and f" {' '.join(words)} " in self.spaced_words

    def names_id(self, token: str) -> bool:
        """Return whether the prompt contains an id as a whole token."""
        return bool(re.search(rf"(?<!\w){re.escape(_normalize(token))}(?!\w)", self.text))


def repeats_material(
    prompt: str,
    texts: Collection[str],
    ids: Collection[str],
    *,
    shipped: str = "",
    levels: Collection[str] = (),
    open_texts: Iterable[str] = (),
) -> bool:
    """Return whether a prompt contains eight consecutive words (Korean: 20 characters) of a text, or three ids as whole
    tokens. Texts shorter than that count as ids.

    ``levels`` of scales, passages of the ``shipped`` prompt and passages of ``open_texts`` are not counted."""
    prompt_text, shipped_text = PromptText(prompt), PromptText(shipped)
    level_texts = {_normalize(level) for level in levels}
    named_ids = {
        _normalize(question_id)
        for question_id in ids
        if prompt_text.names_id(question_id) and not shipped_text.names_id(question_id)
    } - level_texts
    quoted_passages = {passage for text in texts for passage in prompt_text.quotations(text)}
    repeated_texts = {" ".join(_words(text)) for text in texts if prompt_text.repeats_short_text(text)}
    for text in (shipped, *open_texts):
        if not quoted_passages and not repeated_texts:
            break
        open_text = PromptText(text)
        quoted_passages -= open_text.word_runs | open_text.korean_windows
        repeated_texts = {repeated for repeated in repeated_texts if f" {repeated} " not in open_text.spaced_words}
    return bool(quoted_passages) or len(named_ids) > MAX_IDS or len(repeated_texts) > MAX_IDS


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _words(text: str) -> list[str]:
    return _WORD.findall(_normalize(text))


def _runs(words: list[str]) -> Iterator[str]:
    return (" ".join(words[start : start + QUOTATION_WORDS]) for start in range(len(words) - QUOTATION_WORDS + 1))


def _korean_pieces(text: str) -> Iterator[str]:
    """Windows of mostly Hangul text, without their spaces."""
    for start in range(len(text) - QUOTATION_CHARACTERS + 1):
        window = text[start : start + QUOTATION_CHARACTERS]
        piece = window.replace(" ", "")
        if 2 * len(_HANGUL.findall(piece)) >= len(piece):
            yield piece
