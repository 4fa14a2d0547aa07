"""Keywords made ready once: what each tier needs to know about a keyword before it sees an answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evaluation.metrics.boundaries import is_hangul
from evaluation.metrics.negation import holds_negation
from evaluation.metrics.particles import without_particle
from evaluation.metrics.prepared import PreparedText

_LEAST_COMPOUND = 2
_LEAST_SPLIT = 3


@dataclass(frozen=True, slots=True)
class Keyword:
    """One wording of a keyword. ``text`` is folded; ``canonical`` is empty where it holds no number or article;
    ``first_value`` is its first number or article; ``without_currency`` is the canonical text of an amount without its
    원; ``stem`` is the text without one
    unambiguous particle, empty where it has none."""

    text: str
    squeezed: str
    canonical: str
    without_currency: str
    first_value: str
    stem: str
    has_hangul: bool
    may_go_on: bool
    may_be_split: bool
    is_negative: bool


@lru_cache(maxsize=16_384)
def compile_keyword(written: str) -> Keyword:
    """The keyword as the tiers search it; ``text`` is empty where nothing but white space was written."""
    prepared = PreparedText(written.strip())
    text = prepared.text.strip()
    syllables = sum(map(is_hangul, text))
    values = [q for q in prepared.quantities if not q.is_code]
    canonical = prepared.canonical.text.strip() if values else ""
    is_amount = bool(values) and values[-1].unit == "원" and values[-1].unit_end == len(prepared.text)
    stem = without_particle(text)
    squeezed = prepared.squeezed.text.strip()
    letters = sum(character.isalpha() for character in text)
    return Keyword(
        text=text,
        squeezed=squeezed,
        canonical=canonical,
        without_currency=canonical.removesuffix("원") if is_amount else "",
        first_value=values[0].canonical if values else "",
        stem=stem if stem != text else "",
        has_hangul=syllables > 0,
        may_go_on=(syllables if text and is_hangul(text[-1]) else letters) >= _LEAST_COMPOUND,
        may_be_split=syllables >= _LEAST_SPLIT or squeezed != text,
        is_negative=holds_negation(text),
    )
