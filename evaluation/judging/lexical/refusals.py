"""Whether a text says that something is not known or not there: the offline baseline's view, by predicates."""

from __future__ import annotations

import re

from evaluation.judging.lexical.words import sentences

_NOT_KNOWN = re.compile(
    r"(?:찾을|찾아볼|확인할|알|답할|답변할|제공할|말씀드릴|드릴)\s?수(?:가|는)?\s?없|확인되지\s?않|제공(?:하|되)지\s?않"
    r"|(?:포함|언급|기재|명시)(?:(?:되어|돼)?\s?있지|되지)\s?않|모르겠|모릅니다|알지\s?못"
    r"|(?:정보|내용|자료|기록|데이터|언급|근거|답변|설명|항목|(?:문서|문단|출처)에)[^.\n]{0,12}없(?:습니다|다\b|어요|음\b)"
    r"|(?:could|can|did|was|were)\s?(?:not|n't)\s(?:be\s|able to\s)?"
    r"(?:find|found|locate|determine|confirm|answer|verif)"
    r"|\bcannot (?:be )?(?:find|found|determine|confirm|answer|verif)"
    r"|\bunable to (?:find|determine|confirm|answer|verif)"
    r"|\bdo(?:es)?(?: not|n't) (?:contain|mention|specify|provide|include|cover|know|have (?:any )?information)"
    r"|\b(?:is|are|was|were)(?: not|n't) (?:available|found|provided|mentioned|specified|stated|known|covered|listed)"
    r"|\bno (?:information|record|data|mention|document)|\bnot (?:available|found)\b",
    re.IGNORECASE,
)
# 없 counts only as a predicate, not behind words it makes positive (문제없습니다) and not as "cannot" (넘을 수 없다).
_NOT_THERE = re.compile(
    r"존재하지\s?않|(?<!문제)(?<!틀림)(?<!변함)(?<!상관)(?<!다름)(?<!끊임)(?<!어김)(?<!수)"
    r"(?<!문제[가는] )(?<!변함이 )(?<!상관[이은] )(?<!다름이 )(?<!수 )(?<!수[는가] )없(?:습니다|다\b|어요|음\b)"
    r"|\bdo(?:es)?(?: not|n't) exist|\bthere (?:is|are|was|were) no\b|\bno such\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"아니|아닙|아닌|않|못\s?[하한했]|\bnot\b|n't\b|\bno\b|\bnever\b|\brather than\b", re.IGNORECASE)
_SHORT = 2  # sentences


def refuses(text: str) -> bool:
    """Whether the text as a whole says that the answer is not known: in its first sentence, or anywhere in a text of
    at most two."""
    return any(states_ignorance(part) for part in _decisive(text))


def denies(text: str) -> bool:
    """Whether the text refuses, or says in the same place that what was asked for does not exist."""
    return any(states_ignorance(part) or _NOT_THERE.search(part) for part in _decisive(text))


def states_ignorance(sentence: str) -> bool:
    """Whether one sentence says that something is not known or not in the sources."""
    return bool(_NOT_KNOWN.search(sentence))


def negates(text: str) -> bool:
    """Whether the text holds a negation of any kind anywhere."""
    return any(pattern.search(text) for pattern in (_NEGATION, _NOT_KNOWN, _NOT_THERE))


def _decisive(text: str) -> tuple[str, ...]:
    parts = sentences(text)
    return parts if len(parts) <= _SHORT else parts[:1]
