"""Guesses of the field that each column of an unknown table holds, from its heading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evaluation.formats.answer_rows import ANSWER, CONTEXTS, QUESTION_ID, QUESTION_TEXT, RETRIEVED_IDS
from evaluation.formats.question_rows import ALTERNATIVES, ID, PASSAGES, REFERENCE
from evaluation.formats.tree import Columns
from evaluation.formats.values import LIKELY_NAMES, NON_TEXT_NAME, fold_name

_NUMBER = r"(?:_?(?:id|no|nr|num|number|key)|_?번호|_?아이디)"
_ID = re.compile(rf"(?:(?:question|query|prompt|q|case|test|item|row|질문|문항|질의){_NUMBER}|id|no|nr|번호|연번|순번)")
_PASSAGE_WORD = (
    r"(?:ctx|context|passage|source|chunk|doc(?:ument)?|evidence|snippet|문맥|맥락|컨텍스트|문단|문서|근거|출처|청크)"
)
_PASSAGE = re.compile(rf"(?:(?:retrieved|top|found|검색)_?)?{_PASSAGE_WORD}e?s?(?:_?(?:texts?|content|내용))?_?\d*")
_PASSAGE_ID = re.compile(rf"(?:\w+_)?{_PASSAGE_WORD}s?_?\d*_?(?:ids?|번호|아이디)")
_OTHERS = {
    "expected_keywords": re.compile(
        r"key_?words?|key_?terms?|must_?(?:have|include|mention|contain)|키워드|핵심어|필수_?단어"
    ),
    "category": re.compile(r"^(?:categor|topic|분류|유형|카테고리|주제)"),
    "difficulty": re.compile(r"difficult|난이도"),
    "tags": re.compile(r"^(?:tags?|labels?|태그)$"),
}
_MEASURES = {
    "latency_seconds": re.compile(r"latency|elapsed|response_?time|seconds|응답_?시간|소요_?시간"),
    "confidence": re.compile(r"confidence|신뢰도|확신"),
}
QUESTIONS = "questions"
_KNOWN = {
    "questions": {
        "question": QUESTION_TEXT,
        "id": ID,
        "expected_answer": (*REFERENCE, *ALTERNATIVES),
        "ground_truth_chunk_ids": PASSAGES,
    },
    "answers": {
        **{"question": QUESTION_TEXT, "question_id": (*QUESTION_ID, "id", "_id"), "answer": ANSWER},
        **{"contexts": CONTEXTS, "retrieved_context_ids": RETRIEVED_IDS},
    },
}


def lacks_required_columns(kind: str, names: Iterable[str]) -> bool:
    """Return whether no column is known as the question, or in answers as the answer, its passages or an error."""
    folded = {fold_name(name) for name in names}
    known = _KNOWN[kind]
    if kind == QUESTIONS:
        return folded.isdisjoint(known["question"])
    results = (*known["answer"], *known["contexts"], *known["retrieved_context_ids"], "error")
    return folded.isdisjoint((*known["question"], *known["question_id"])) or folded.isdisjoint(results)


def guess_columns(kind: str, names: Sequence[str]) -> Columns:
    """Pair each column with its likely field, or with ``metadata``. Only passages may have several columns.

    The first column without a guess becomes the question, or the answer, if no heading looks like one."""
    guesses = {name: _guess(kind, name) for name in names}
    taken: set[str] = set()
    for name, field in guesses.items():
        if field in taken and field != "contexts":
            guesses[name] = ""
        taken.add(field)
    required = ("question",) if kind == QUESTIONS else ("question", "answer")
    for field in required:
        if (
            field in taken
            or (field == "question" and "question_id" in taken)
            or (field == "answer" and "contexts" in taken)
        ):
            continue
        if name := next((name for name, guess in guesses.items() if not guess), ""):
            guesses[name] = field
    return tuple((name, field or "metadata") for name, field in guesses.items())


def _guess(kind: str, name: str) -> str:
    folded = re.sub(r"[\W_]+", "_", fold_name(name)).strip("_")
    for field, names in _KNOWN[kind].items():
        if folded in names:
            return field
    if _ID.fullmatch(folded):
        return "id" if kind == QUESTIONS else "question_id"
    if _PASSAGE_ID.fullmatch(folded):
        return "ground_truth_chunk_ids" if kind == QUESTIONS else "retrieved_context_ids"
    if kind != QUESTIONS and _PASSAGE.fullmatch(folded):
        return "contexts"
    for field, pattern in (_OTHERS if kind == QUESTIONS else _MEASURES).items():
        if pattern.search(folded):
            return field
    if NON_TEXT_NAME.search(folded):
        return ""
    texts = (
        {"expected_answer": "reference", "question": "question"}
        if kind == QUESTIONS
        else {"answer": "answer", "question": "question"}
    )
    if kind != QUESTIONS and re.search(r"reference|truth|gold|expect|정답|모범|기대", folded):
        return ""
    return next((field for field, likely in texts.items() if LIKELY_NAMES[likely].search(folded)), "")
