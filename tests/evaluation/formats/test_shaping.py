"""Files of other products are recognised, read by map files, or refused by the name of their shape."""

from __future__ import annotations

import pytest

from evaluation.core.errors import InvalidFile
from evaluation.formats.answer_rows import AnswerFile
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.shaping import ANSWERS, SHAPES_DIRECTORY, column_map, read_map, shipped_shapes
from tests.evaluation.formats.shapes_of_others import QUESTION_TEXT, SAMPLES, Sample
from tests.evaluation.formats.support import expect_problems, facts, jsonl

DOCUMENTED_SHAPES = """Ragas, DeepEval, Langfuse, LangSmith examples, LangSmith runs, Phoenix, MLflow, Opik,
 Inspect samples, Inspect log, promptfoo tests, promptfoo table, promptfoo results, AutoRAG, RAGChecker, LlamaIndex,
 OpenAI evals,
 SQuAD and KorQuAD, BEIR queries, BEIR corpus, relevance judgements (qrels)"""


def sample_name(sample: Sample) -> str:
    return sample.name


def test_every_known_shape_has_a_sample_and_is_documented() -> None:
    known = {shape.title for name, shape in shipped_shapes().items() if (SHAPES_DIRECTORY / f"{name}.yaml").exists()}
    assert (
        known - {"Concord records"}
        == {sample.shape for sample in SAMPLES}
        == {title.strip() for title in DOCUMENTED_SHAPES.split(",")}
    )


@pytest.mark.parametrize("sample", SAMPLES, ids=sample_name)
def test_questions_of_other_products_are_read_or_refused_by_name(sample: Sample) -> None:
    if sample.question is None:
        (problem,) = expect_problems(read_questions, sample.data, sample.name)
        assert problem.params == {"shape": sample.shape}
        return
    file = read_questions(sample.data.encode(), sample.name)
    (question,) = file.questions
    fields = (question.id, question.text, question.references, question.ground_truth_chunk_ids)
    assert fields == (sample.question[0] or question.id, *sample.question[1:])
    assert file.shape == sample.shape


@pytest.mark.parametrize("sample", SAMPLES, ids=sample_name)
def test_answers_of_other_products_are_read_or_refused_by_name(sample: Sample) -> None:
    if sample.answer is None:
        (problem,) = expect_problems(read_answers, sample.data, sample.name)
        if problem.code != "format_not_accepted":
            assert problem.params == {"shape": sample.shape}
        return
    file = read_answers(sample.data.encode(), sample.name)
    (answer,) = file.answers
    contexts = answer.answer.contexts
    texts = None if contexts is None else tuple(context.text for context in contexts)
    assert (answer.question_id, answer.answer.text, texts) == sample.answer
    assert (file.shape, answer.question) == (sample.shape, QUESTION_TEXT)


@pytest.mark.parametrize("sample", SAMPLES, ids=sample_name)
def test_remark_reports_the_target_of_every_column(sample: Sample) -> None:
    if sample.question:
        file = read_questions(sample.data.encode(), sample.name)
        columns = next(remark.params["columns"] for remark in file.remarks if remark.code == "shape_known")
        assert all(f"{column} → {target}" in columns for column, target in file.columns)
        assert file.columns
        assert all(target for _, target in file.columns)


def test_columns_of_the_own_shape_are_reported() -> None:
    file = read_questions(jsonl({"query": "q", "reference": "a", "tone": "kind"}), "a.jsonl")
    assert (file.shape, file.columns) == (
        "",
        (("query", "question"), ("reference", "expected_answer"), ("tone", "metadata")),
    )


def test_column_empty_in_some_rows_keeps_its_target() -> None:
    shape = read_map(b"answers: {question_id: id, answer: said, error: [why]}")
    rows = [{"id": "1", "said": "a", "why": ""}, {"id": "2", "said": "", "why": "down"}, {"id": "3", "said": "b"}]
    assert dict(read_answers(jsonl(*rows), "a.jsonl", shape=shape).columns) == {
        "id": "question_id",
        "said": "answer",
        "why": "error",
    }


def test_empty_passage_list_means_empty_retrieval() -> None:
    run = {"run_type": "chain", "inputs": {"question": "q"}, "outputs": {"answer": "a", "contexts": []}}
    assert read_answers(jsonl(run), "a.jsonl").answers[0].answer.contexts == ()


def test_mlflow_records_are_not_read_as_langsmith_examples() -> None:
    record = {"dataset_id": "d", "inputs": {"question": "q"}, "outputs": {"response": "r"}}
    record["expectations"] = {"expected_response": "x"}
    assert read_questions(jsonl(record), "a.jsonl").questions[0].references == ("x",)


def test_record_metadata_is_unwrapped() -> None:
    sample = next(candidate for candidate in SAMPLES if candidate.shape == "Phoenix")
    assert read_questions(sample.data.encode(), sample.name).metadata["1"] == {"k": "v"}


def test_shape_with_more_matching_columns_wins() -> None:
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


def test_map_locates_the_fields() -> None:
    file = read_questions(ITEMS.encode(), "a.json", shape=read_map(MAP.encode()))
    assert [(row.id, row.text, row.references) for row in file.questions] == [("7", "q", ("a",)), ("8", "p", ())]
    assert file.metadata["7"] == {"ask": {"by": "me"}}
    assert file.set_metadata == {"name": "mine"}
    assert ("ask.text", "question") in file.columns
    answers = read_answers(ITEMS.encode(), "a.json", shape=read_map(MAP.encode()))
    assert [(row.question_id, row.answer.text, row.line) for row in answers.answers] == [("8", "s", 3)]
    assert [row.params for row in answers.remarks if row.code == "no_answer_yet"] == [{"rows": 1}]


def test_columns_mapped_to_metadata_become_metadata() -> None:
    choices = [("번호", "question_id"), ("본문", "answer"), ("text", "answer"), ("Note", "metadata")]
    rows = [{"번호": "q1", "본문": "a", "text": "b", "Note": "n"}, {"번호": "q2", "본문": "", "text": "b", "Note": "n"}]
    shape = read_map(column_map(ANSWERS, choices).encode())
    file = read_answers(jsonl(*rows), "a.jsonl", shape=shape)
    assert [(row.question_id, row.answer.text) for row in file.answers] == [("q1", "a"), ("q2", "b")]
    assert [row.metadata["Note"] for row in file.answers] == ["n", "n"]


def test_map_disables_guessing() -> None:
    text = '[{"input": "q", "expected_output": "no", "other": "a"}]'
    shape = read_map(b"questions: {question: input, expected_answer: other}")
    assert read_questions(text.encode(), "a.json", shape=shape).questions[0].references == ("a",)


def test_mapped_questions_can_be_grouped_by_metadata() -> None:
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
        (f"questions: {{question: {'a' * 2_001}}}", "map_invalid", "questions.question.0"),
        ("rows: 'a b'\nquestions: {question: a}", "map_invalid", "rows"),
        ("a: b: c", "yaml_syntax", ""),
        ("a: " + "x" * 100_000, "file_too_large", ""),
    ],
)
def test_invalid_map_is_refused_with_its_place(text: str, code: str, field: str) -> None:
    (problem,) = expect_problems(read_map, text, "m.yaml")
    assert (problem.code, problem.field) == (code, field)


def test_map_that_fails_names_line_and_field() -> None:
    shape = read_map(b"questions: {question: q, id: 'join(`1`, q)'}")
    problems = expect_problems(read_questions, jsonl({"q": "a"}, {"q": "b"}), "a.jsonl", shape=shape)
    assert [(problem.code, problem.line, problem.field, problem.more_lines) for problem in problems] == [
        ("map_failed", 1, "id", (2,))
    ]
    map_without_rows = read_map(b"rows: items\nquestions: {question: q}")
    assert facts(expect_problems(read_questions, '\n{"a": 1}', "a.json", shape=map_without_rows)) == [
        ("map_finds_no_rows", 2, "")
    ]


@pytest.mark.parametrize("reader", [read_questions, read_answers])
@pytest.mark.parametrize("sample", SAMPLES, ids=sample_name)
def test_every_reader_reads_or_refuses_every_shape(sample: Sample, reader: object) -> None:
    """The reader returns the reference or answer, or a problem that has a place or names the shape."""
    try:
        outcome = reader(sample.data.encode(), sample.name)  # type: ignore[operator]
    except InvalidFile as refusal:
        outcome = refusal
    if isinstance(outcome, QuestionFile):
        assert sample.question is not None
        assert outcome.questions[0].references == sample.question[2]
    elif isinstance(outcome, AnswerFile):
        assert sample.answer is not None
    else:
        assert outcome.problems
