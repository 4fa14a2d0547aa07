"""Which of the retrieved passages an answer draws on: those it names in brackets, and those whose words it has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from evaluation.core.metric_specs import Bilingual, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import ReviewForm
from evaluation.metrics.normalise import content_tokens, fold, fold_with_lines, folded, is_hangul, sentences

_WORDS, _CHARACTERS = 5, 20
_REWORDED, _LEAST_SHARED = 0.3, 4
_BRACKETED = re.compile(r"\[([^\]\n]{1,200})\]|\(((?:출처|source)[^)\n]{1,200})\)")
_KIND = (
    r"(?:출처|문서|문단|자료|근거|참고|청크|(?:source|document|doc|passage|chunk|context|reference|ref)s?)\.?\s?:?\s?"
)
_COUNTED = rf"(?:{_KIND})?#?\d{{1,6}}번?(?:\s?[-~]\s?\d{{1,6}}번?)?"
_LISTED = re.compile(rf"\^?[\s,]*{_COUNTED}(?:(?:[\s,;&·]|및|and)+{_COUNTED})*[\s,]*")
_ENDS = re.compile(r"(\d{1,6})(?:번?\s?[-~]\s?(\d{1,6}))?")


@rule_metric(
    name="citation_coverage",
    version=3,
    title=Bilingual("Citation coverage", "출처 활용률"),
    formula=Bilingual(
        "retrieved passages the answer draws on (names them, shares five words or twenty characters in a row, or, in "
        "Korean, rewords one of their sentences) / retrieved passages",
        "답변이 활용한 검색 청크 수(청크를 밝히거나, 다섯 낱말 또는 스무 글자가 이어서 같거나, 한국어 문장을 바꾸어 쓴 "
        "경우) / 검색 청크 수",
    ),
    source="004",
    inputs=("contexts",),
    review_form=ReviewForm.CONTEXTS,
)
def citation_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, 0 where nothing was retrieved; not applicable where the system does not retrieve.
    Each passage is a finding, ``cited`` or ``uncited``, with how it is drawn on."""
    contexts = answer.contexts
    if contexts is None:
        return Result.not_applicable("does_not_retrieve")
    if not contexts:
        return Result.scored(0.0)
    text, words = folded(answer.text), content_tokens(answer.text)
    told = _syllable_pairs(answer.text)
    named = {position for place in passages_named(answer.text, contexts) for position in place.passages}
    ways = [
        "reference" if position in named else _drawn_on(text, words, told, context)
        for position, context in enumerate(contexts)
    ]
    names = [context.chunk_id or str(position + 1) for position, context in enumerate(contexts)]
    return Result.scored(
        sum(map(bool, ways)) / len(ways),
        detail={
            "cited": [name for name, way in zip(names, ways, strict=True) if way],
            "uncited": [name for name, way in zip(names, ways, strict=True) if not way],
        },
        findings=tuple(
            Finding("context", name, "cited" if way else "uncited", position, reason=way)
            for position, (name, way) in enumerate(zip(names, ways, strict=True))
        ),
    )


def _drawn_on(text: str, words: Sequence[str], told: Sequence[frozenset[str]], context: ContextSpec) -> str:
    """How the answer draws on a passage that it does not name: ``words``, ``characters``, ``reworded``, or an empty
    text."""
    given = content_tokens(context.text)
    length = min(_WORDS, len(given))
    if length and _runs(given, length) & _runs(words, length):
        return "words"
    if _runs(folded(context.text), _CHARACTERS) & _runs(text, _CHARACTERS):
        return "characters"
    return "reworded" if _rewords(told, context.text) else ""


def _rewords(told: Sequence[frozenset[str]], passage: str) -> bool:
    """Whether a Korean sentence of the answer says what one of the passage says in other words: the Dice coefficient of
    the two sets of syllable pairs is at least .3. Why so, and how well it tells: docs/decisions/0012."""
    sets = ((len(said & given), len(said) + len(given)) for given in _syllable_pairs(passage) for said in told)
    return any(shared >= _LEAST_SHARED and 2 * shared >= _REWORDED * both for shared, both in sets)


@lru_cache(maxsize=4096)
def _syllable_pairs(text: str) -> tuple[frozenset[str], ...]:
    """For each sentence with Hangul the pairs of neighbours in its content words, which endings change little."""
    lined = fold_with_lines(text)
    parts = (lined[start:end] for start, end in sentences(lined))
    return tuple(frozenset(_pairs_of(part)) for part in parts if any(map(is_hangul, part)))


def _pairs_of(sentence: str) -> Iterator[str]:
    for word in content_tokens(sentence):
        yield from [word] if len(word) < 2 else (word[i : i + 2] for i in range(len(word) - 1))


class Named(NamedTuple):
    """A place of a text (offsets, end exclusive) that names passages, by their positions from 0."""

    start: int
    end: int
    passages: tuple[int, ...]


def passages_named(text: str, contexts: Sequence[ContextSpec]) -> list[Named]:
    """Where brackets name passages by id, source or number from 1: ``[2]``, ``[1, 3]``, ``[1-3]``, ``[doc 2]``,
    ``(출처 2)``, ``(출처: 학칙)``. Several numbers in a bracket are places of their own; of a range the first
    one stands for all but the last."""
    view = fold(text)
    names = [[name for name in (folded(one.chunk_id), folded(one.source)) if name] for one in contexts]
    found = (place for match in _BRACKETED.finditer(view.text) for place in _named_in(match, names))
    return [Named(*view.span(place.start, place.end), place.passages) for place in found]


def _named_in(bracket: re.Match[str], names: Sequence[Sequence[str]]) -> list[Named]:
    inside = bracket[1] or bracket[2]
    same = [position for position, of in enumerate(names) if inside.strip() in of]
    if same and not inside.strip().isdigit():  # a passage may be called "문서 2"
        return [Named(*bracket.span(), tuple(same))]
    numbered = _numbered_in(bracket, len(names)) if _LISTED.fullmatch(inside) else []
    if len(numbered) > 1:
        return numbered
    positions = [*(position for place in numbered for position in place.passages), *same]
    if not positions:
        positions = [at for at, of in enumerate(names) if any(_stands_in(name, inside) for name in of)]
    return [Named(*bracket.span(), tuple(positions))] if positions else []


def _numbered_in(bracket: re.Match[str], count: int) -> list[Named]:
    found = []
    for match in _ENDS.finditer(bracket.string, *bracket.span()):
        first, last = int(match[1]), int(match[2] or match[1])
        if first < last <= count and first:
            found.append(Named(*match.span(1), tuple(range(first - 1, last - 1))))
            found.append(Named(*match.span(2), (last - 1,)))
        else:
            numbers = ((at, int(match[at])) for at in (1, 2) if match[at])
            found += [Named(*match.span(at), (number - 1,)) for at, number in numbers if 0 < number <= count]
    return found


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _runs(items: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(items[i : i + length]) for i in range(len(items) - length + 1)}
