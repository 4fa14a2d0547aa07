"""Retrieved passages that an answer uses: named in brackets, or sharing its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from evaluation.core.metric_specs import Bilingual, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import ReviewForm
from evaluation.metrics.normalise import content_tokens, fold, fold_with_lines, folded, is_hangul, sentences

_SHARED_WORDS, _SHARED_CHARACTERS = 5, 20
_MIN_DICE, _MIN_SHARED_PAIRS = 0.3, 4
# Each sentence of an answer is compared with each of a passage.
_MAX_SENTENCES = 500
_BRACKET = re.compile(r"\[([^\]\n]{1,200})\]|\(((?:출처|source)[^)\n]{1,200})\)")
_SOURCE_WORD = (
    r"(?:출처|문서|문단|자료|근거|참고|청크|(?:source|document|doc|passage|chunk|context|reference|ref)s?)\.?\s?:?\s?"
)
_NUMBERED_SOURCE = rf"(?:{_SOURCE_WORD})?#?\d{{1,6}}번?(?:\s?[-~]\s?\d{{1,6}}번?)?"
_SOURCE_LIST = re.compile(rf"\^?[\s,]*{_NUMBERED_SOURCE}(?:(?:[\s,;&·]|및|and)+{_NUMBERED_SOURCE})*[\s,]*")
_NUMBER_RANGE = re.compile(r"(\d{1,6})(?:번?\s?[-~]\s?(\d{1,6}))?")


@rule_metric(
    name="citation_coverage",
    version=3,
    title=Bilingual("Citation coverage", "출처 활용률"),
    formula=Bilingual(
        "retrieved passages the answer draws on (names them, shares five words or twenty characters in a row, or, in "
        "Korean, rewords one of their sentences) / retrieved passages",
        "답변이 활용한 검색 청크 수(청크를 밝히거나, 다섯 단어 또는 스무 글자가 이어서 같거나, 한국어 문장을 바꾸어 쓴 "
        "경우) / 검색 청크 수",
    ),
    source="phases",
    inputs=("contexts",),
    review_form=ReviewForm.CONTEXTS,
)
def citation_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Share of used passages, 0 to 1; 0 if nothing was retrieved. Not applicable if the system does not retrieve. Each
    passage is a finding, ``cited`` or ``uncited``, with the kind of use."""
    contexts = answer.contexts
    if contexts is None:
        return Result.not_applicable("does_not_retrieve")
    if not contexts:
        return Result.scored(0.0)
    text, words = folded(answer.text), content_tokens(answer.text)
    answer_pairs = _syllable_pairs(answer.text)
    named_positions = {position for mention in passage_mentions(answer.text, contexts) for position in mention.passages}
    usages = [
        "reference" if position in named_positions else _usage(text, words, answer_pairs, context)
        for position, context in enumerate(contexts)
    ]
    names = [context.chunk_id or str(position + 1) for position, context in enumerate(contexts)]
    return Result.scored(
        sum(map(bool, usages)) / len(usages),
        detail={
            "cited": [name for name, usage in zip(names, usages, strict=True) if usage],
            "uncited": [name for name, usage in zip(names, usages, strict=True) if not usage],
        },
        findings=tuple(
            Finding("context", name, "cited" if usage else "uncited", position, reason=usage)
            for position, (name, usage) in enumerate(zip(names, usages, strict=True))
        ),
    )


def _usage(text: str, words: Sequence[str], answer_pairs: Sequence[frozenset[str]], context: ContextSpec) -> str:
    """Use of a passage that the answer does not name: ``words``, ``characters``, ``reworded``, or an empty string."""
    passage_tokens = content_tokens(context.text)
    length = min(_SHARED_WORDS, len(passage_tokens))
    if length and _ngrams(passage_tokens, length) & _ngrams(words, length):
        return "words"
    if _ngrams(folded(context.text), _SHARED_CHARACTERS) & _ngrams(text, _SHARED_CHARACTERS):
        return "characters"
    return "reworded" if _is_reworded(answer_pairs, context.text) else ""


def _is_reworded(answer_pairs: Sequence[frozenset[str]], passage: str) -> bool:
    """Return whether a Korean sentence of the answer rewords one of the passage: the Dice coefficient of their syllable
    pairs is at least .3. For the rationale and accuracy see docs/decisions/0012."""
    overlaps = (
        (len(answer_sentence & passage_sentence), len(answer_sentence) + len(passage_sentence))
        for passage_sentence in _syllable_pairs(passage)
        for answer_sentence in answer_pairs
    )
    return any(shared >= _MIN_SHARED_PAIRS and 2 * shared >= _MIN_DICE * total for shared, total in overlaps)


@lru_cache(maxsize=4096)
def _syllable_pairs(text: str) -> tuple[frozenset[str], ...]:
    """Syllable pairs of the content words of the first distinct Hangul sentences that have enough of them; endings
    change few of them."""
    folded_lines = fold_with_lines(text)
    sentence_texts = (folded_lines[start:end] for start, end in sentences(folded_lines))
    pairs = (frozenset(_sentence_pairs(sentence)) for sentence in sentence_texts if any(map(is_hangul, sentence)))
    distinct = dict.fromkeys(sentence for sentence in pairs if len(sentence) >= _MIN_SHARED_PAIRS)
    return tuple(islice(distinct, _MAX_SENTENCES))


def _sentence_pairs(sentence: str) -> Iterator[str]:
    for word in content_tokens(sentence):
        yield from [word] if len(word) < 2 else (word[i : i + 2] for i in range(len(word) - 1))


class PassageMention(NamedTuple):
    """Span of a text (end exclusive) that names passages, by their positions from 0."""

    start: int
    end: int
    passages: tuple[int, ...]


def passage_mentions(text: str, contexts: Sequence[ContextSpec]) -> list[PassageMention]:
    """Brackets that name passages by id, source or number from 1: ``[2]``, ``[1, 3]``, ``[1-3]``, ``[doc 2]``, ``(출처
    2)``, ``(출처: 학칙)``. Each number of a bracket gets its own span. The first number of a range covers all passages
    but the last."""
    folded_text = fold(text)
    names = [[name for name in (folded(context.chunk_id), folded(context.source)) if name] for context in contexts]
    mentions = (mention for match in _BRACKET.finditer(folded_text.text) for mention in _mentions_in(match, names))
    return [PassageMention(*folded_text.span(mention.start, mention.end), mention.passages) for mention in mentions]


def _mentions_in(bracket: re.Match[str], names: Sequence[Sequence[str]]) -> list[PassageMention]:
    bracket_text = bracket[1] or bracket[2]
    exact_positions = [position for position, labels in enumerate(names) if bracket_text.strip() in labels]
    # A passage may be called "문서 2".
    if exact_positions and not bracket_text.strip().isdigit():
        return [PassageMention(*bracket.span(), tuple(exact_positions))]
    numbered_mentions = _numbered_mentions(bracket, len(names)) if _SOURCE_LIST.fullmatch(bracket_text) else []
    if len(numbered_mentions) > 1:
        return numbered_mentions
    positions = [*(position for mention in numbered_mentions for position in mention.passages), *exact_positions]
    if not positions:
        positions = [
            index for index, labels in enumerate(names) if any(_contains_word(name, bracket_text) for name in labels)
        ]
    return [PassageMention(*bracket.span(), tuple(positions))] if positions else []


def _numbered_mentions(bracket: re.Match[str], count: int) -> list[PassageMention]:
    mentions = []
    for match in _NUMBER_RANGE.finditer(bracket.string, *bracket.span()):
        first, last = int(match[1]), int(match[2] or match[1])
        if first < last <= count and first:
            mentions.append(PassageMention(*match.span(1), tuple(range(first - 1, last - 1))))
            mentions.append(PassageMention(*match.span(2), (last - 1,)))
        else:
            numbers = ((group, int(match[group])) for group in (1, 2) if match[group])
            mentions += [
                PassageMention(*match.span(group), (number - 1,)) for group, number in numbers if 0 < number <= count
            ]
    return mentions


def _contains_word(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _ngrams(items: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(items[i : i + length]) for i in range(len(items) - length + 1)}
