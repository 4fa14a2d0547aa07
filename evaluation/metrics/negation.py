"""Detection of negated clauses in Korean and English.

Korean negates at the end of the clause (보장되지 않는다) or right before the verb (안 된다). English negates before or
after, so the whole clause counts. A closed list of patterns contains a negating word but negates nothing ("뿐 아니라",
"not only", "없지 않다"). Without a morphological analyzer the adverbs 안 and 못 cannot be distinguished from nouns
(inside, nail), so callers then only report the negation."""

from __future__ import annotations

import re
from functools import lru_cache

from evaluation.metrics.normalise import is_hangul, morphemes, sentence_span

_KOREAN = re.compile(
    r"없|않|아니|아닌|아닙|아닐|아님|못|(?<![가-힣])안(?=[\s가-힣])"
    r"|(?:(?<=지)|(?<=지\s))(?:말|마(?=[세십라요.!\s]))"
)
_ENGLISH = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|cannot|without|\w+n't|isnt|arent|doesnt|dont|didnt|wasnt|cant)\b"
)
_NOT_NEGATING = re.compile(
    r"뿐\s?만?\s?(?:이\s?)?아니|없지\s?않|(?:않|아니|아닐)(?:을)?\s?수\s?(?:가\s?)?없|못지\s?않|마지\s?않|"
    r"다름\s?아닌|지\s?않을까"
    r"|(?:문제|틀림|변함|상관|관계|다름|끊임|어김|어이|빠짐|손색|아낌)(?:이|가|은|는)?\s?없"
    r"|[가-힣]+\s?(?:지\s?)?(?:않|없|못하|아니)(?:는|았)?다는\s?[^.!?\n]{0,12}?(?:사실이\s?아[니닙닌]|사실과\s?다|"
    r"오해|틀[린렸립]|거짓|옳지\s?않)"
    r"|\b(?:is|it's|isn't|not) ?(?:not true|true|untrue|wrong|incorrect|false|misleading|a myth)(?: to \w+)? that "
    r"[^.!?;\n]*?(?:\bnot\b|n't\b|\bno\b|\bnever\b)"
    r"|\bnot (?:only|just|merely|simply|least|to mention)\b|\bno(?:\.\s?\d| doubt| less than| fewer than| later than)"
    r"|\bnothing but\b|\bwithout (?:a )?doubt\b|\bnot un\w+|\bno\.(?=\s?\d)"
)
_CLAUSE_END = re.compile(
    r",(?!\d)|[;:()]"
    r"|(?:지만|는데|은데|인데|으나|으며|면서|니까|므로|거나|[하되이않없니있]고|[하되이]며|해서|돼서|되어서|하여|"
    r"아니라|라서|없이도?)(?=[\s,])"
    r"|\b(?:but|however|although|though|whereas|while|because|instead|rather)\b"
)
_NEGATING_TAGS = frozenset({"VA", "VX", "VCN", "MAG", "VV"})
# Maximum characters between the adverb 안 or 못 and the verb it negates.
_MAX_GAP = 2


def holds_negation(folded: str) -> bool:
    """Return whether the text contains a negating word, so that a negated hit matches it."""
    return bool(_KOREAN.search(folded) or _ENGLISH.search(folded))


def is_false_negation(text: str, place: int) -> bool:
    """Return whether a negating word at ``place`` belongs to a pattern that negates nothing, such as 문제없습니다."""
    first, last = sentence_span(text, place)
    return any(match.start() <= place < match.end() for match in _NOT_NEGATING.finditer(text, first, last))


@lru_cache(maxsize=256)
def _negators(sentence: str) -> tuple[tuple[int, int, bool], ...]:
    """Start, end and language (true for Korean) of each negating word of a sentence."""
    false_negations = [match.span() for match in _NOT_NEGATING.finditer(sentence)]
    korean = [m.span() for m in _KOREAN.finditer(sentence)]
    korean = [span for span in korean if _is_negating_morpheme(sentence, span[0])]
    negators = [(s, e, True) for s, e in korean] + [(*m.span(), False) for m in _ENGLISH.finditer(sentence)]
    return tuple(n for n in sorted(negators) if not any(start <= n[0] < end for start, end in false_negations))


def _is_negating_morpheme(sentence: str, place: int) -> bool:
    """Return whether the analyzer assigns the syllable to a verb or adverb; true without an analyzer."""
    sentence_morphemes = morphemes(sentence)
    if sentence_morphemes is None:
        return True
    return any(m.tag.split("-")[0] in _NEGATING_TAGS and m.start <= place < m.end for m in sentence_morphemes)


def clause_span(text: str, place: int) -> tuple[int, int]:
    """Start and end of the clause around ``place``: up to punctuation or a connecting ending, within the sentence."""
    start, sentence_end = sentence_span(text, place)
    for match in _CLAUSE_END.finditer(text, start, sentence_end):
        if match.end() > place:
            return start, match.end()
        start = match.end()
    return start, sentence_end


def is_negated(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` of a folded text lies in a negated clause."""
    first, last = sentence_span(text, start)
    sentence = text[first:last]
    if not holds_negation(sentence):
        return False
    clause_start, clause_end = (place - first for place in clause_span(text, start))
    return any(
        _negator_reaches(sentence, negator, start - first, end - first)
        for negator in _negators(sentence)
        if clause_start <= negator[0] < clause_end
    )


def _negator_reaches(sentence: str, negator: tuple[int, int, bool], start: int, end: int) -> bool:
    negator_start, negator_end, is_korean = negator
    if not is_korean:
        return negator_start >= end or negator_end <= start
    if negator_start >= end:
        return True
    gap = sentence[negator_end:start]
    return (
        sentence[negator_start] in "안못"
        and negator_end <= start
        and len(gap) < _MAX_GAP
        and not any(map(is_hangul, gap))
    )
