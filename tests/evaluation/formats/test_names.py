"""Names in files are normalised to composed Unicode, so that macOS spellings match."""

import unicodedata
from collections.abc import Callable

import pytest

from evaluation.formats.reading import read_answers, read_questions
from tests.evaluation.formats.support import jsonl

COMPOSED = "급여규정.pdf#2"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
CAFÉ = "cafe\u0301"


@pytest.mark.parametrize(
    ("row", "read"),
    [
        ({"id": DECOMPOSED}, lambda q: q.id),
        ({"category": DECOMPOSED}, lambda q: q.category),
        ({"tags": [DECOMPOSED]}, lambda q: q.tags[0]),
        ({"difficulty": DECOMPOSED}, lambda q: q.difficulty),
        ({"group": DECOMPOSED}, lambda q: q.group),
        ({"ground_truth_chunk_ids": [DECOMPOSED]}, lambda q: q.ground_truth_chunk_ids[0]),
        ({"retrieval_gt": [[DECOMPOSED]]}, lambda q: q.ground_truth_chunk_ids[0]),
    ],
)
def test_question_names_are_composed(row: dict[str, object], read: Callable[..., str]) -> None:
    (question,) = read_questions(jsonl({"question": "Who pays?", **row}), "a.jsonl").questions
    assert read(question) == COMPOSED


def test_section_system_and_passage_names_are_composed() -> None:
    data = f"{unicodedata.normalize('NFD', '규정')}:\n- question: a?\n".encode()
    assert read_questions(data, "a.yaml").questions[0].category == "규정"
    rows = [
        {"question_id": "a", "answer": "x", "system": CAFÉ, "contexts": [{"id": DECOMPOSED, "text": "t"}]},
        {"question_id": "b", "answer": "x", "system": "caf\u00e9", "retrieved_context_ids": [DECOMPOSED]},
    ]
    file = read_answers(jsonl(*rows), "a.jsonl")  # one system, not two
    first, second = file.answers
    assert file.system == "caf\u00e9"
    assert first.answer.contexts is not None
    assert first.answer.contexts[0].chunk_id == COMPOSED
    assert second.answer.retrieved_ids == (COMPOSED,)


def test_topic_and_passage_ids_of_judgements_are_composed() -> None:
    topics = "질1\tWho pays?\n질2\tWhen?\n".encode()
    qrels = unicodedata.normalize("NFD", f"질1 0 {COMPOSED} 1\n질2 0 x 0\n").encode()
    first, second = read_questions(topics, "t.tsv", qrels=qrels).questions
    assert first.ground_truth_chunk_ids == (COMPOSED,)
    assert second.ground_truth_chunk_ids == ()
