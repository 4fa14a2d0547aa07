"""Whether a text says that something is not there or not known: the offline baseline's view, by predicates."""

from __future__ import annotations

import re

from evaluation.judging.lexical.words import sentences

# 없 counts only as a predicate, and not behind words it makes positive (문제없습니다 refuses nothing).
_REFUSAL = re.compile(
    r"(?:찾을|찾아볼|확인할|알|답할|답변할|제공할|말씀드릴|드릴)\s?수(?:가|는)?\s?없|존재하지\s?않|확인되지\s?않|제공(?:하|되)지\s?않"
    r"|(?:포함|언급|기재|명시)(?:되어|돼)?\s?있지\s?않|(?:포함|언급|기재|명시)되지\s?않|모르겠|모릅니다|알지\s?못"
    r"|(?<!문제)(?<!틀림)(?<!변함)(?<!상관)(?<!다름)(?<!끊임)(?<!어김)"
    r"(?<!문제[가는] )(?<!변함이 )(?<!상관[이은] )(?<!다름이 )없(?:습니다|다\b|어요|음\b)"
    r"|(?:could|can|did|was|were)\s?(?:not|n't)\s(?:be\s|able to\s)?"
    r"(?:find|found|locate|determine|confirm|answer|verif)"
    r"|\bcannot (?:be )?(?:find|found|determine|confirm|answer|verif)|\bunable to\b|\bdo(?:es)?(?: not|n't) exist"
    r"|\bdo(?:es)?(?: not|n't) (?:contain|mention|specify|provide|include|cover|know|have)"
    r"|\b(?:is|are|was|were)(?: not|n't) (?:available|found|provided|mentioned|specified|stated|known|covered|listed)"
    r"|\bthere (?:is|are|was|were) no\b|\bno (?:information|record|data|mention|such|document)"
    r"|\bnot (?:available|found)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"아니|아닙|아닌|않|못\s?[하한했]|\bnot\b|n't\b|\bno\b|\bnever\b|\brather than\b", re.IGNORECASE)
_SHORT = 2  # sentences


def refuses(text: str) -> bool:
    """Whether the text as a whole says that there is no answer: in its first sentence, or anywhere if it is short."""
    parts = sentences(text)
    looked_at = parts if len(parts) <= _SHORT else parts[:1]
    return any(_REFUSAL.search(part) for part in looked_at)


def states_absence(sentence: str) -> bool:
    """Whether one sentence says that something is not there or not known."""
    return bool(_REFUSAL.search(sentence))


def negates(text: str) -> bool:
    """Whether the text holds a negation or a refusal anywhere."""
    return bool(_NEGATION.search(text) or _REFUSAL.search(text))
