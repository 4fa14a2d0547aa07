"""Citation coverage (source 004, phase 1): the share of the retrieved passages that the answer draws on.

Drawn on is a passage that the answer refers to explicitly, or with which it shares a run of five content words (all of
them where the passage has fewer) or of 20 characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.content_tokens import content_tokens
from evaluation.metrics.normalise import folded

_WORDS, _CHARACTERS = 5, 20
_BRACKETED = re.compile(r"\[([^\]\n]{1,200})\]|\(((?:출처|source)[^)\n]{1,200})\)")
_NUMBERS = re.compile(r"[\d\s,]+")


@rule_metric(
    MetricSpec(
        name="citation_coverage",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Citation coverage", "출처 활용률"),
        formula=Bilingual(
            "retrieved passages the answer draws on / retrieved passages",
            "답변이 활용한 검색 청크 수 / 검색 청크 수",
        ),
        source="004",
        inputs=("contexts",),
        review_form=ReviewForm.CONTEXTS,
    )
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
    ways = [_drawn_on(text, words, context, position) for position, context in enumerate(contexts)]
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


def _drawn_on(text: str, words: Sequence[str], context: ContextSpec, position: int) -> str:
    """How the answer draws on a passage: ``reference``, ``words``, ``characters``, or an empty text."""
    if _refers(text, context, position):
        return "reference"
    given = content_tokens(context.text)
    length = min(_WORDS, len(given))
    if length and _runs(given, length) & _runs(words, length):
        return "words"
    if _runs(folded(context.text), _CHARACTERS) & _runs(text, _CHARACTERS):
        return "characters"
    return ""


def _refers(text: str, context: ContextSpec, position: int) -> bool:
    """Whether a bracket names the passage by its id, source or number (from 1)."""
    names = [name for name in (folded(context.chunk_id), folded(context.source)) if name]
    for match in _BRACKETED.finditer(text):
        inside = match[1] or match[2]
        if _NUMBERS.fullmatch(inside):
            if str(position + 1) in re.findall(r"\d+", inside) or inside.strip() in names:
                return True
        elif any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", inside) for name in names):
            return True
    return False


def _runs(items: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(items[i : i + length]) for i in range(len(items) - length + 1)}
