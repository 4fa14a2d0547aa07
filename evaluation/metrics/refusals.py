"""Refusals and admissions of not knowing: the one list of phrases per language behind ``dont_know``, ``answer_class``
and ``negative_detection``.

A phrase pairs a subject (the documents, the information, the assistant) with a predicate (not found, stated, known,
available, told). It counts as a statement of the assistant: not in quotes, not under a condition, not about a third
person, not where it is denied itself ("it is wrong to say that the report does not mention it"), and not where the
answer goes on, or has begun, with a figure or fact of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeAlias

from evaluation.metrics.normalise import fold, fold_with_lines, sentences
from evaluation.metrics.refusal_words import EN, KO

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Joints:
    """The expressions between the elements of a pattern of one language; every repetition has a small limit."""

    word: str
    space: str
    near: str
    far: str
    start: str
    end: str
    special: Mapping[str, str]


_EN_JOINTS = _Joints(
    word=r"\b(?:%s)\b",
    space=r"\s+",
    near=r"\W+(?:(?:\w+ly|even|actually|quite|just|also|yet|anywhere|really|still|ever|therefore|simply)\W+)?",
    far=r"(?:\W+(?!(?:that|which|who)\b)[\w'\"-]+){0,8}?\W+",
    start=r"^\W*(?:(?:sorry|unfortunately|regrettably|sadly|hmm|well|apologies|answer|and|so)\W+)?",
    end=r"\W*$",
    special={},
)
_KO_JOINTS = _Joints(
    word="(?:%s)",
    space=" ?",
    near="[은는이가을를도의만에서로]{0,3} ?",
    far=".{0,30}?",
    start=r"^\W*(?:(?:답변|결론|죄송합니다|음)\W+)?",
    end=r"\W*$",
    special={
        # not adnominal (없는 상품), conditional (없으면) or quoted (없다고)
        "END": r"(?:[습합]니|는?다(?![고는면던며지])|[어아해](?![도지진야])|요|음|네|군|거든|더라(?!도)|으[니므며나]"
        r"|하므|기 때문|고|지만|"
        r"는데|을 것|[았었겠했](?:습니|다(?![고는면])|어|네|고|지만|는데|으[나며니므]|음|거든|던))",
        "NO_QUESTION": "(?!.*[는은인할을던]지)",
    },
)


def _compile(patterns: Iterable[str], classes: Mapping[str, str], joints: _Joints) -> re.Pattern[str]:
    """One expression for all patterns of a language."""

    @cache
    def words(name: str) -> str:
        return "|".join(sorted({spelling(word) for word in classes[name].split(", ")}, key=len, reverse=True))

    def spelling(word: str) -> str:
        """A word, with the words of the classes in it."""
        return joints.space.join(_CLASS.sub(inner, re.escape(part)) for part in word.split(" "))

    def inner(match: re.Match[str]) -> str:
        return joints.special.get(match[0]) or f"(?:{words(match[0])})"

    def expression(tree: _Tree, joint: str) -> str:
        """The alternatives of a tree of elements: patterns that begin alike share their beginning."""
        branches = []
        for element, below in tree.items():
            if element in _MARKS:
                branches.append(expression(below, joints.far if element == ".." else joints.start))
            elif element in {"", "$"}:
                branches.append(joints.end if element else "")
            else:
                branches.append(joint + (joints.word % spelling(element)) + expression(below, joints.near))
        return f"(?:{'|'.join(branches)})"

    tree: _Tree = {}
    for pattern in patterns:
        place = tree
        for element in (*pattern.split(), ""):
            place = place.setdefault(element, {})
    return re.compile(expression(tree, ""))


_Tree: TypeAlias = "dict[str, _Tree]"
_CLASS = re.compile(r"[A-Z]+(?:_[A-Z]+)*")
_MARKS = frozenset({"^", ".."})


@dataclass(frozen=True, slots=True)
class Wording:
    """The compiled phrases of one language, all searched in one clause of a folded text."""

    refusals: re.Pattern[str]
    unasserted: re.Pattern[str]
    contrasts: re.Pattern[str]
    service: re.Pattern[str]


@cache
def _wording(is_korean: bool) -> Wording:
    phrases, joints = (KO, _KO_JOINTS) if is_korean else (EN, _EN_JOINTS)
    return Wording(
        *(
            _compile(patterns, phrases.classes, joints)
            for patterns in (phrases.refusals, phrases.unasserted, phrases.contrasts, phrases.service)
        )
    )


_HANGUL = re.compile("[가-힣]")
_QUOTED = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
_ASIDE = re.compile(r"\([^()]*\)|, (?:however|unfortunately|though|at least|therefore|in fact),")
_CLAUSE_END = re.compile(
    r",(?!\d)|[;:]|\s-\s|\b(?=(?:but|because|since|so|although|though|whereas|while|if|unless|when)\b)"
    r"|(?<=지만)\s|(?<=[는은]데)\s|(?<=으나)\s|(?<=[이으]며)\s|(?<=므로)\s|(?<=하고)\s|(?<=[했았었]고)\s|"
    r"(?<=니다만)\s|(?<=못해)\s"
)
_FIGURE = re.compile(r"\d")
FEW_SENTENCES = 2  # sentences: of longer answers only the first statement is looked at


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of a folded text: where its phrase of refusal stands, if it asserts one, and whether it is a service."""

    text: str
    sentence: int
    phrase: Span | None
    asserted: bool
    wording: Wording

    @property
    def is_service(self) -> bool:
        return self.wording.service.search(self.text) is not None


@lru_cache(maxsize=1024)
def _clauses(text: str) -> tuple[_Clause, ...]:
    """The clauses of a folded text in order, what is quoted left blank."""
    text = _ASIDE.sub(lambda match: " " * len(match[0]), text)
    text = _QUOTED.sub(lambda match: " " * len(match[0]), text) if _QUOTED.sub("", text).strip(" .!") else text
    found = []
    for number, (first, last) in enumerate(sentences(text)):
        start = first
        for end in (*(match.end() for match in _CLAUSE_END.finditer(text, first, last)), last):
            clause = text[start:end]
            if clause.strip():
                wording = _wording(_HANGUL.search(clause) is not None)
                asserted = wording.unasserted.search(clause) is None
                match = wording.refusals.search(clause) if asserted else None
                span = (start + match.start(), start + match.end()) if match else None
                found.append(_Clause(clause, number, span, asserted, wording))
            start = end
    return tuple(found)


def _states_a_fact(clauses: tuple[_Clause, ...]) -> bool:
    """Whether a clause without a refusal gives a figure, or takes a refusal back ("..., but it is Ottawa")."""
    before: _Clause | None = None
    for clause in clauses:
        if clause.phrase is None and not clause.is_service:
            pair = (before.text, clause.text) if before and before.phrase else ()
            if any(map(clause.wording.contrasts.search, pair)) or (_FIGURE.search(clause.text) and clause.asserted):
                return True
        before = clause
    return False


def phrases_of_refusal(answer: str) -> tuple[Span, ...]:
    """Where phrases of refusal stand in the original text, whether or not the answer goes on with a fact."""
    view = fold(answer)
    return tuple(view.span(*one.phrase) for one in _clauses(fold_with_lines(answer)) if one.phrase)


def find_refusal(answer: str, *, anywhere: bool = True) -> Span | None:
    """Where an answer refuses or admits not to know; ``None`` where it does not, or gives a figure or fact all the
    same. Not ``anywhere``: only where an answer would stand, which is the first statement of more than two
    sentences."""
    clauses = _clauses(fold_with_lines(answer))
    phrases = [clause for clause in clauses if clause.phrase]
    if not phrases or _states_a_fact(clauses):
        return None
    first = phrases[0]
    if not anywhere and len({clause.sentence for clause in clauses}) > FEW_SENTENCES:
        lead = next(clause.sentence for clause in clauses if clause.phrase or not clause.is_service)
        if first.sentence > lead:
            return None
    return fold(answer).span(*first.phrase) if first.phrase else None
