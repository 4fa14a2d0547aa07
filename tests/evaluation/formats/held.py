"""Fields that each export format preserves: a full record is written, read back and compared. ``python -m
tests.evaluation.formats.held`` prints the table of ``docs/files.md``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluation.core.errors import InvalidFile
from evaluation.core.samples import AnswerSpec, CheckPhrases, ContextSpec, Nugget, QuestionSpec
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.records import RATINGS, Record, form_names, write_records

QUESTION = QuestionSpec(
    id="q1",
    category="policy",
    text="환불은 며칠 안에?",
    difficulty="hard",
    references=("14일", "2주"),
    keywords=(("14일", "2주"), ("신청",)),
    check="should_correct_premise",
    check_phrases=CheckPhrases(any_of=("14일",)),
    hops=2,
    aggregation_type="count",
    inference_type="causal",
    required_info=("order",),
    nuggets=(Nugget(name="14일", alternatives=("2주",)),),
    ground_truth_chunk_ids=("d1", "d2"),
    persona="customer",
    history=("hello",),
    clarification_ok=True,
    group="g",
    tags=("t",),
)
CONTEXTS = (ContextSpec("제3조 | 환불", "d1", 0.5, "terms.pdf", {"page": 3}), ContextSpec("둘", "d3"))
RECORD = Record(
    question=QUESTION,
    question_metadata={"origin": "faq"},
    answer=AnswerSpec("14일 안에\n가능합니다.", CONTEXTS, None, 1.5),
    confidence=0.9,
    system="my-rag",
    answer_metadata={"model": "m"},
)
UNANSWERED = Record(
    question=QUESTION.model_copy(update={"id": "q2", "text": "누구에게?"}),
    question_metadata={},
    answer=None,
    answered=False,
)
FIELDS = ("id", "question", "expected", "all expected", "keywords", "category", "difficulty", "passages to find")
ANSWER_FIELDS = ("answer", "passages", "ids of passages", "answered by id", "no answer yet", "confidence", "sample")


def round_trip_fields(form: str) -> dict[str, bool]:
    """Whether each field survives a round trip through the format."""
    second_sample = replace(RECORD, sample=1, first=False)
    text = "".join(write_records(form, [RECORD, UNANSWERED])).encode()
    samples_text = "".join(write_records(form, [RECORD, second_sample, UNANSWERED])).encode()
    name = f"{form}.txt" if form.startswith("trec") else f"{form}.json"
    preserved = dict.fromkeys((*FIELDS, "everything of a question", *ANSWER_FIELDS, "everything of an answer"), False)
    if form == "trec_qrels":
        topics = "".join(write_records("trec_topics", [RECORD, UNANSWERED])).encode()
        (first, _) = read_questions(topics, "topics.txt", qrels=text).questions
        return preserved | {"passages to find": first.ground_truth_chunk_ids == QUESTION.ground_truth_chunk_ids}
    try:
        question = next(row for row in read_questions(text, name).questions if row.text == QUESTION.text)
        preserved |= _question_fields(question)
    except InvalidFile:
        pass
    try:
        answers = read_answers(text, name).answers
        preserved |= _answer_fields(answers)
        preserved["sample"] = [row.sample for row in read_answers(samples_text, name).answers] == [0, 1]
    except InvalidFile:
        pass
    return preserved


def _question_fields(question: QuestionSpec) -> dict[str, bool]:
    return {
        "id": question.id == QUESTION.id,
        "question": True,
        "expected": question.references[:1] == QUESTION.references[:1],
        "all expected": question.references == QUESTION.references,
        "keywords": question.keywords == QUESTION.keywords,
        "category": question.category == QUESTION.category,
        "difficulty": question.difficulty == QUESTION.difficulty,
        "passages to find": question.ground_truth_chunk_ids == QUESTION.ground_truth_chunk_ids,
        "everything of a question": question == QUESTION,
    }


def _answer_fields(answers: Any) -> dict[str, bool]:
    first = answers[0]
    texts = [context.text for context in first.answer.contexts or ()]
    ids = first.answer.retrieved_ids or tuple(context.chunk_id for context in first.answer.contexts or ())
    assert RECORD.answer is not None
    return {
        "answer": first.answered and first.answer.text == RECORD.answer.text,
        "passages": texts == [context.text for context in CONTEXTS],
        "ids of passages": ids == ("d1", "d3"),
        "answered by id": first.question_id == QUESTION.id,
        "no answer yet": len(answers) == 1,
        "confidence": first.confidence == RECORD.confidence,
        "everything of an answer": (first.answer, {**first.metadata, "system": 0})
        == (RECORD.answer, {**(RECORD.answer_metadata or {}), "system": 0}),
    }


def format_table() -> str:
    """The table of ``docs/files.md``: the preserved fields of each format."""
    lines = ["| form | questions | answers |", "|---|---|---|"]
    for form in form_names():
        if form == RATINGS:
            continue
        preserved = round_trip_fields(form)
        lines.append(
            f"| `{form}` | {_describe(preserved, FIELDS, 'question')} | "
            f"{_describe(preserved, ANSWER_FIELDS, 'answer')} |"
        )
    return "\n".join(lines)


def _describe(preserved: dict[str, bool], fields: tuple[str, ...], subject: str) -> str:
    everything = f"everything of {'an answer' if subject == 'answer' else 'a question'}"
    if preserved[everything]:
        return "everything"
    names = [field for field in fields if preserved[field] and not (field == "expected" and preserved["all expected"])]
    return ", ".join(names) if names and set(names) != {"no answer yet"} else "–"


if __name__ == "__main__":
    print(format_table())
