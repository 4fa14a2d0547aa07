"""Files of other products are recognised and read by map files, or refused by the name of their shape."""

from __future__ import annotations

import pytest

from evaluation.core.errors import InvalidFile
from evaluation.formats.answer_rows import AnswerFile
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.shaping import ANSWERS, SHAPES_DIRECTORY, column_map, read_map, shipped_shapes
from tests.evaluation.formats.shapes_of_others import SAMPLES, Q, Sample
from tests.evaluation.formats.support import facts, jsonl, refused

PROMISED = """Ragas, DeepEval, Langfuse, LangSmith examples, LangSmith runs, Phoenix, MLflow, Opik, Inspect samples,
 Inspect log, promptfoo tests, promptfoo table, promptfoo results, AutoRAG, RAGChecker, LlamaIndex, OpenAI evals,
 SQuAD and KorQuAD, BEIR queries, BEIR corpus, relevance judgements (qrels)"""


def named(sample: Sample) -> str:
    return sample.name


def test_every_known_shape_has_a_sample_and_every_promised_one_is_known() -> None:
    known = {shape.title for name, shape in shipped_shapes().items() if (SHAPES_DIRECTORY / f"{name}.yaml").exists()}
    assert (
        known - {"Concord records"}
        == {sample.shape for sample in SAMPLES}
        == {one.strip() for one in PROMISED.split(",")}
    )


@pytest.mark.parametrize("sample", SAMPLES, ids=named)
def test_questions_of_others_are_read_or_refused_by_name(sample: Sample) -> None:
    if sample.question is None:
        (problem,) = refused(read_questions, sample.data, sample.name)
        assert problem.params == {"shape": sample.shape}
        return
    read = read_questions(sample.data.encode(), sample.name)
    (question,) = read.questions
    found = (question.id, question.text, question.references, question.ground_truth_chunk_ids)
    assert found == (sample.question[0] or question.id, *sample.question[1:])
    assert read.shape == sample.shape


@pytest.mark.parametrize("sample", SAMPLES, ids=named)
def test_answers_of_others_are_read_or_refused_by_name(sample: Sample) -> None:
    if sample.answer is None:
        (problem,) = refused(read_answers, sample.data, sample.name)
        if problem.code != "format_not_accepted":
            assert problem.params == {"shape": sample.shape}
        return
    read = read_answers(sample.data.encode(), sample.name)
    (answer,) = read.answers
    contexts = answer.answer.contexts
    texts = None if contexts is None else tuple(one.text for one in contexts)
    assert (answer.question_id, answer.answer.text, texts) == sample.answer
    assert (read.shape, answer.question) == (sample.shape, Q)


@pytest.mark.parametrize("sample", SAMPLES, ids=named)
def test_of_every_column_it_is_told_what_became_of_it(sample: Sample) -> None:
    if sample.question:
        read = read_questions(sample.data.encode(), sample.name)
        told = next(one.params["columns"] for one in read.remarks if one.code == "shape_known")
        assert all(f"{column} → {became}" in told for column, became in read.columns)
        assert read.columns
        assert all(became for _, became in read.columns)


def test_columns_of_our_own_shape_are_told_too() -> None:
    read = read_questions(jsonl({"query": "q", "reference": "a", "tone": "kind"}), "a.jsonl")
    assert (read.shape, read.columns) == (
        "",
        (("query", "question"), ("reference", "expected_answer"), ("tone", "metadata")),
    )


def test_a_column_that_is_empty_in_some_rows_became_what_it_is_in_the_others() -> None:
    shape = read_map(b"answers: {question_id: id, answer: said, error: [why]}")
    rows = [{"id": "1", "said": "a", "why": ""}, {"id": "2", "said": "", "why": "down"}, {"id": "3", "said": "b"}]
    assert dict(read_answers(jsonl(*rows), "a.jsonl", shape=shape).columns) == {
        "id": "question_id",
        "said": "answer",
        "why": "error",
    }


def test_a_list_that_is_empty_says_that_nothing_was_found_whatever_its_name() -> None:
    run = {"run_type": "chain", "inputs": {"question": "q"}, "outputs": {"answer": "a", "contexts": []}}
    assert read_answers(jsonl(run), "a.jsonl").answers[0].answer.contexts == ()


def test_records_of_mlflow_are_no_examples_of_langsmith() -> None:
    record = {"dataset_id": "d", "inputs": {"question": "q"}, "outputs": {"response": "r"}}
    record["expectations"] = {"expected_response": "x"}
    assert read_questions(jsonl(record), "a.jsonl").questions[0].references == ("x",)


def test_metadata_of_a_record_is_kept_without_its_wrapping() -> None:
    sample = next(one for one in SAMPLES if one.shape == "Phoenix")
    assert read_questions(sample.data.encode(), sample.name).metadata["1"] == {"k": "v"}


def test_of_two_shapes_the_one_with_more_of_its_columns_is_taken() -> None:
    row = {"qid": "1", "query": "q", "retrieval_gt": [["d"]], "user_input": "q", "response": "r"}
    assert read_questions(jsonl(row), "a.jsonl").shape == "AutoRAG"


MAP = """
rows: items
questions:
  id: nr && to_string(nr)
  question: [ask.text, ask]
  expected_answer: "gold[?ok].words"
answers:
  when: said
  question_id: nr && to_string(nr)
  question: ask.text
  answer: said
"""
ITEMS = """{"name": "mine", "items": [
{"nr": 7, "ask": {"text": "q", "by": "me"}, "gold": [{"ok": true, "words": "a"}, {"ok": false, "words": "b"}]},
{"nr": 8, "ask": "p", "said": "s", "gold": []}]}"""


def test_a_map_says_where_the_fields_stand() -> None:
    read = read_questions(ITEMS.encode(), "a.json", shape=read_map(MAP.encode()))
    assert [(one.id, one.text, one.references) for one in read.questions] == [("7", "q", ("a",)), ("8", "p", ())]
    assert read.metadata["7"] == {"ask": {"by": "me"}}
    assert read.set_metadata == {"name": "mine"}
    assert ("ask.text", "question") in read.columns
    answers = read_answers(ITEMS.encode(), "a.json", shape=read_map(MAP.encode()))
    assert [(one.question_id, one.answer.text, one.line) for one in answers.answers] == [("8", "s", 3)]
    assert [one.params for one in answers.remarks if one.code == "no_answer_yet"] == [{"rows": 1}]


def test_columns_that_are_said_to_be_no_field_become_metadata() -> None:
    said = [("번호", "question_id"), ("본문", "answer"), ("text", "answer"), ("Note", "metadata")]
    rows = [{"번호": "q1", "본문": "a", "text": "b", "Note": "n"}, {"번호": "q2", "본문": "", "text": "b", "Note": "n"}]
    shape = read_map(column_map(ANSWERS, said).encode())
    file = read_answers(jsonl(*rows), "a.jsonl", shape=shape)
    assert [(row.question_id, row.answer.text) for row in file.answers] == [("q1", "a"), ("q2", "b")]
    assert [row.metadata["Note"] for row in file.answers] == ["n", "n"]


def test_a_map_makes_no_guess_beside_it() -> None:
    text = '[{"input": "q", "expected_output": "no", "other": "a"}]'
    shape = read_map(b"questions: {question: input, expected_answer: other}")
    assert read_questions(text.encode(), "a.json", shape=shape).questions[0].references == ("a",)


def test_questions_of_a_mapped_file_can_be_grouped_by_what_it_kept() -> None:
    rows = jsonl({"user_input": "q", "reference": "a", "doc": "d"})
    assert read_questions(rows, "a.jsonl", group_by="doc").questions[0].group == "d"


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ("questions: {question: 'a['}", "map_invalid", "questions.question.0"),
        ("questions: {question: a, answer: b}", "map_invalid", "questions.answer"),
        ("questions: {}", "map_invalid", "questions.question"),
        ("title: t", "map_invalid", "questions"),
        ("- a", "map_invalid", "questions"),
        ("questions: {question: '[@,@]|[@,@]|[@,@]|[@,@]'}", "map_invalid", "questions.question.0"),
        (f"questions: {{question: {'a' * 301}}}", "map_invalid", "questions.question.0"),
        ("rows: 'a b'\nquestions: {question: a}", "map_invalid", "rows"),
        ("a: b: c", "yaml_syntax", ""),
        ("a: " + "x" * 100_000, "file_too_large", ""),
    ],
)
def test_a_map_that_is_none_is_refused_with_its_place(text: str, code: str, field: str) -> None:
    (problem,) = refused(read_map, text, "m.yaml")
    assert (problem.code, problem.field) == (code, field)


def test_a_map_that_does_not_fit_names_line_and_field() -> None:
    shape = read_map(b"questions: {question: q, id: 'join(`1`, q)'}")
    problems = refused(read_questions, jsonl({"q": "a"}, {"q": "b"}), "a.jsonl", shape=shape)
    assert [(one.code, one.line, one.field, one.more_lines) for one in problems] == [("map_failed", 1, "id", (2,))]
    nowhere = read_map(b"rows: items\nquestions: {question: q}")
    assert facts(refused(read_questions, '\n{"a": 1}', "a.json", shape=nowhere)) == [("map_finds_no_rows", 2, "")]


@pytest.mark.parametrize("reader", [read_questions, read_answers])
@pytest.mark.parametrize("sample", SAMPLES, ids=named)
def test_every_reader_is_fed_with_every_shape_and_none_is_silent(sample: Sample, reader: object) -> None:
    """Read with its reference or answer, or refused with a problem that has a place or names the shape."""
    try:
        read = reader(sample.data.encode(), sample.name)  # type: ignore[operator]
    except InvalidFile as refusal:
        read = refusal
    if isinstance(read, QuestionFile):
        assert sample.question is not None
        assert read.questions[0].references == sample.question[2]
    elif isinstance(read, AnswerFile):
        assert sample.answer is not None
    else:
        assert read.problems
