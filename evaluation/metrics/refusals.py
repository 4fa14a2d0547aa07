"""Refusals and admissions of ignorance, for ``dont_know``, ``answer_class`` and ``negative_detection``.

An answer is read clause by clause. A clause refuses if its predicate does and the clause asserts it: outside of quotes,
conditions and reports about other people, and not denied itself. The answer refuses if a clause does and none gives a
figure or fact; apologies, advice and descriptions of the sources are not facts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import TypeAlias

from evaluation.metrics import refusal_words as words
from evaluation.metrics.normalise import fold, fold_with_lines, hangul_run, holds_hangul, sentences

Span: TypeAlias = tuple[int, int]

# Sentences; in longer answers only the first statement is considered.
SHORT_ANSWER_SENTENCES = 2

_QUOTED = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?![a-z0-9])")
_ASIDE = re.compile(r"\([^()]*\)|, (?:however|unfortunately|though|at least|therefore|in fact),")
_FIGURE = re.compile(r"(?<![a-z\d-])(?<!passage )(?<!document )(?<!source )(?<!context )\d")
# Minimum words of an English statement.
_MIN_WORDS = 3
_EN_WORD = re.compile(r"[\w']+")
_NUMBERED = frozenset({"section", "page", "table", "chapter", "article", "clause", "paragraph", "annex", "form"})


@cache
def _expression(name: str) -> re.Pattern[str]:
    return re.compile(getattr(words, name))


@dataclass(frozen=True, slots=True)
class _Clause:
    """Clause of a folded text: its asserted refusal phrase, if any, and what else it states."""

    sentence: int
    phrase: Span | None = None
    # Could be the answer: neither advice nor about the question and the sources.
    stands_alone: bool = False
    # States something other than a refusal, an apology, advice or what the sources cover.
    informs: bool = False
    # The figure is stated as a fact.
    has_figure: bool = False
    # Contrasts with the clause before it: "but", "however".
    contrasts: bool = False
    # Concedes to the adjacent clause: "although", "because".
    concedes: bool = False
    is_advice: bool = False


@lru_cache(maxsize=1024)
def _clauses(text: str) -> tuple[_Clause, ...]:
    """Clauses of a folded text in order, with quotations blanked."""
    text = _ASIDE.sub(_blank, text)
    text = _QUOTED.sub(_blank, text) if _QUOTED.sub("", text).strip(" .!") else text
    reader = _Korean() if holds_hangul(text) else _English()
    clauses = []
    for number, (first, last) in enumerate(sentences(text)):
        ends = (match.end() for match in reader.clause_end.finditer(text, first, last))
        for start, end in pairwise((first, *ends, last)):
            if re.search(r"\w", text[start:end]):
                clauses.append(reader.read(text, start, end, number))
    return tuple(clauses)


def _blank(match: re.Match[str]) -> str:
    """Spaces of equal length; keeps the sentence end within closing quotes."""
    return " " * (len(match[0]) - 2) + (match[0][-2] if match[0][-2:] in {'."', '!"', '?"'} else " ") + " "


@cache
def _kinds() -> dict[str, str]:
    """Kind letter of every known English word."""
    kinds: dict[str, str] = {}
    for letter, verbs in words.EN_VERBS.items():
        for verb in verbs.split():
            stem = verb.removesuffix("e")
            third, past = verb + "s", stem + "ed"
            if verb.endswith(("fy", "ny")):
                third, past = verb[:-1] + "ies", verb[:-1] + "ied"
            elif verb.endswith(("ch", "ss", "go")):
                third = verb + "es"
            kinds |= {verb: letter, third: letter, stem + "ing": letter, past: letter.upper()}
    for letter, names in words.EN_WORDS.items():
        kinds |= dict.fromkeys(names.split(), letter)
    return kinds


# Kinds that most patterns do not distinguish.
_SIMILAR_KINDS = {"D": "Dd", "N": "NX"}


@cache
def _row_pattern(name: str) -> re.Pattern[str]:
    alternatives = "|".join(getattr(words, name))
    alternatives = re.sub(r"~(\d)", r"[^R]{0,\1}?", alternatives).replace("&", "[NXyz0b]")
    for kind, kinds in _SIMILAR_KINDS.items():
        alternatives = re.sub(rf"(\[[^]]*){kind}", rf"\1{kinds}", alternatives)
        alternatives = re.sub(rf"(?<![\[\w]){kind}(?![^\[]*\])|(?<=\w){kind}(?![^\[]*\])", f"[{kinds}]", alternatives)
    return re.compile(alternatives.replace("@", "D"))


class _English:
    """Reader of the clauses of one text. "it" and "they" mean the sources once an earlier clause names them."""

    def __init__(self) -> None:
        self.clause_end = _expression("EN_CLAUSE_END")
        self.sources_named = self.assistant_named = False
        # The sentence whose subject is another person.
        self._others_in = -1

    def read(self, text: str, start: int, end: int, sentence: int) -> _Clause:
        clause = text[start:end]
        condition = _expression("EN_CONDITION").search(clause)
        lead = _expression("EN_LEAD").match(clause)
        word_matches = list(_EN_WORD.finditer(clause, lead.end() if lead else 0))
        row = _row([match[0] for match in word_matches])
        if self.sources_named:
            row = row.replace("T", "d")
        concedes = _expression("EN_CONCESSION").search(clause) is not None
        reason_of_others = concedes and self._others_in == sentence
        phrase = None if reason_of_others else self._phrase(clause, row, word_matches)
        self.sources_named |= any(kind in row for kind in "Dds")
        self.assistant_named |= "M" in row
        if "O" in row:
            self._others_in = sentence
        if phrase:
            return _Clause(sentence, (start + phrase[0], start + phrase[1]), concedes=concedes)
        by_assistant = "M" in row and not _expression("EN_TELLING").search(clause)
        is_advice = by_assistant or _expression("EN_ADVICE").search(clause) is not None
        figure = _FIGURE.search(clause) and not is_advice and not _expression("EN_COVERAGE").search(clause)
        neutral = is_advice or _expression("EN_COURTESY").search(clause) is not None
        about_sources = any(kind in row for kind in "UYDd")
        return _Clause(
            sentence,
            stands_alone=len(word_matches) >= _MIN_WORDS
            and not neutral
            and not condition
            and not any(kind in row for kind in "Dd")
            and "question" not in clause,
            informs=not neutral
            and not about_sources
            and not condition
            and bool(_expression("EN_FINITE").search(clause)),
            has_figure=bool(figure) and not condition,
            contrasts=_expression("EN_CONTRAST").search(clause) is not None,
            concedes=concedes,
            is_advice=neutral or condition is not None,
        )

    def _phrase(self, clause: str, row: str, word_matches: list[re.Match[str]]) -> Span | None:
        if _expression("EN_UNASSERTED").search(clause):
            return None
        match = _row_pattern("EN_REFUSALS").search(row)
        if match is None and (self.sources_named or self.assistant_named or any(kind in row for kind in "DdM")):
            match = _row_pattern("EN_OF_SOURCES").search(row)
        if match is None and self.sources_named:
            match = _row_pattern("EN_CONTINUED").search(row)
        if match and "O" not in row[: match.end()]:
            return word_matches[match.start()].start(), word_matches[match.end() - 1].end()
        idiom = None if match else _expression("EN_IDIOMS").search(clause)
        return idiom.span() if idiom else None


def _row(clause_words: list[str]) -> str:
    """Kind letters of the words."""
    kinds = _kinds()
    row = [kinds.get(word) or kinds.get(word.removesuffix("'s"), "-") for word in clause_words]
    for place, word in enumerate(clause_words):
        if word == "one" and place and clause_words[place - 1] == "no":
            row[place - 1 : place + 1] = "OO"
        before = row[place - 1] if place else ""
        after = row[place + 1] if place + 1 < len(row) else ""
        if word in {"that", "which", "who"}:
            row[place] = _pronoun(word, before, after)
        elif word in {"have", "has", "had"} and after == "o":
            # As in "has to".
            row[place] = "-"
        elif word in _NUMBERED and after and clause_words[place + 1][0].isdigit():
            # "section 3 lists" states a fact, "the section lists" need not.
            row[place] = "-"
        elif word == "patient" and after in {"D", "d"}:
            row[place] = "-"
    return "".join(row)


def _pronoun(word: str, before: str, after: str) -> str:
    """Kind of "that", "which" or "who": R if it begins a relative clause."""
    if not before:
        return "T" if word == "that" else "w"
    if before in "DdIJ" and after and after in "MYU":
        # As in "the documents that I have".
        return "-"
    if before in "-IJWZDdPQHOT" or (word == "that" and before in "xKA"):
        return "R"
    if word != "that":
        return "w"
    return "T" if after and after in "BbNXmpCyz" else "-"


class _Korean:
    """Reader of the clauses of one text, without spaces."""

    def __init__(self) -> None:
        self.clause_end = _expression("KO_CLAUSE_END")
        self._sentence = -1
        # People stay the subject to the end of the sentence.
        self._about_people = False
        # As in "the document has only A, not B".
        self._covered = ""

    def read(self, text: str, start: int, end: int, sentence: int) -> _Clause:
        if sentence != self._sentence:
            self._sentence, self._about_people, self._covered = sentence, False, ""
        places = [place for place in range(start, end) if not text[place].isspace() and text[place] != "*"]
        first = next(number for number, place in enumerate(places) if text[place].isalnum())
        last = next(number for number in range(len(places), 0, -1) if text[places[number - 1]].isalnum())
        places = places[first:last]
        clause = "".join(text[place] for place in places)
        self._about_people |= _expression("KO_PEOPLE").search(text, start, end) is not None
        match = self._match(clause)
        self._covered = clause if _expression("KO_COVERAGE").search(clause) else ""
        if match:
            phrase_end = places[match.end() - 1] + 1
            phrase_end += len(hangul_run(text, phrase_end))
            concedes = _expression("KO_CONTRAST_END").search(clause) is not None
            return _Clause(sentence, (places[match.start()], phrase_end), concedes=concedes)
        neutral = _expression("KO_NEUTRAL").search(clause) is not None
        return _Clause(
            sentence,
            stands_alone=not neutral,
            informs=not neutral and _expression("KO_FINITE").search(clause) is not None,
            has_figure=bool(_FIGURE.search(clause)) and not _expression("KO_ADVICE").search(clause),
            contrasts=_expression("KO_CONTRAST").search(clause) is not None,
            is_advice=neutral,
        )

    def _match(self, clause: str) -> re.Match[str] | None:
        if _expression("KO_UNASSERTED").search(clause):
            return None
        if self._about_people and _expression("KO_PAST").search(clause):
            return None
        match = _alternatives("KO_REFUSALS").search(clause)
        if match:
            return match
        for predicate, context in _korean_pairs():
            for match in islice(predicate.finditer(clause), _PREDICATES):
                if context.search((self._covered + clause[: match.start()])[-_CONTEXT:]):
                    return match
        return None


# Characters before a predicate that are searched for its sources.
_CONTEXT = 80
# Maximum predicates per clause, which bounds hostile text.
_PREDICATES = 20


@cache
def _alternatives(name: str) -> re.Pattern[str]:
    return re.compile("|".join(getattr(words, name)))


@cache
def _korean_pairs() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    return tuple((re.compile(predicate), re.compile(context)) for predicate, context in words.KO_OF_SOURCES)


def _states_fact(clauses: tuple[_Clause, ...]) -> bool:
    """Return whether a clause gives a figure or fact besides the refusal, or retracts it ("..., but it is Ottawa")."""
    refused_in: int | None = None
    previous = _Clause(sentence=-1)
    for clause in clauses:
        same_sentence = previous.sentence == clause.sentence
        if clause.phrase:
            if clause.concedes and same_sentence and previous.informs:
                return True
            refused_in = clause.sentence
        else:
            continues = refused_in == clause.sentence or (refused_in is not None and clause.contrasts)
            retracts = previous.phrase is not None and (clause.contrasts or (same_sentence and previous.concedes))
            informs = clause.informs and not clause.concedes
            if clause.has_figure or (continues and informs) or (retracts and not clause.is_advice):
                return True
        previous = clause
    return False


def phrases_of_refusal(answer: str) -> tuple[Span, ...]:
    """Spans of refusal phrases in the original text, even if the answer continues with a fact."""
    view = fold(answer)
    return tuple(view.span(*clause.phrase) for clause in _clauses(fold_with_lines(answer)) if clause.phrase)


def find_refusal(answer: str, *, anywhere: bool = True) -> Span | None:
    """Span of the refusal or admission of ignorance; ``None`` without one, or if the answer also gives a figure or
    fact.

    Without ``anywhere``, only the first statement of an answer with more than two sentences is considered."""
    clauses = _clauses(fold_with_lines(answer))
    refusal = next((clause for clause in clauses if clause.phrase), None)
    if refusal is None or refusal.phrase is None or _states_fact(clauses):
        return None
    if not anywhere and len({clause.sentence for clause in clauses}) > SHORT_ANSWER_SENTENCES:
        lead = next(clause.sentence for clause in clauses if clause.phrase or clause.stands_alone or clause.has_figure)
        if refusal.sentence > lead:
            return None
    return fold(answer).span(*refusal.phrase)
