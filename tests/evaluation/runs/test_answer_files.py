"""Import of an answer file into an answer set and a run with rule metrics, or a list of problems with lines."""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

import pytest

from evaluation.core.errors import DomainError, InvalidFile
from evaluation.datasets.importing import import_question_set
from evaluation.formats.reading import read_answers
from evaluation.messages.explanations import explain
from evaluation.models import Answer, AnswerSet, AuditEvent, Context, QuestionSet, Run, Score, System, SystemVersion
from evaluation.runs.answer_files import ImportedAnswers, import_answer_file, import_answers
from tests.evaluation.datasets.sources import as_json, as_lines, question, question_file
from tests.factories import make_project, make_question_set, make_user, question_spec

pytestmark = pytest.mark.django_db


def make_capitals(count: int = 3, **fields: Any) -> QuestionSet:
    """A question set with ``count`` questions about capitals, none of them negative."""
    specs = [question_spec(n, category="capitals", **fields) for n in range(1, count + 1)]
    return make_question_set(make_project(), specs)


def import_rows(
    question_set: QuestionSet, rows: list[dict[str, Any]], system: str = "vector", **fields: Any
) -> ImportedAnswers:
    data = as_lines(rows)
    return import_answers(
        question_set, system, read_answers(data, "a.jsonl"), data=data, file_name="a.jsonl", by=None, **fields
    )


def import_problems(question_set: QuestionSet, rows: list[dict[str, Any]]) -> list[tuple[int | None, str, str]]:
    with pytest.raises(InvalidFile) as error:
        import_rows(question_set, rows)
    assert not AnswerSet.objects.exists()
    assert not System.objects.exists()
    return [(p.line, p.field, p.code) for p in error.value.problems]


def test_imported_file_is_stored_and_scored_by_rules() -> None:
    """The answer to question 1 has its keyword "city 1"; the answer to question 2 has none."""
    question_set = make_capitals(2)
    rows = [
        {"question_id": "q1", "answer": "It is city 1.", "latency_seconds": 2.5},
        {"question_id": "q2", "answer": "Nobody knows."},
    ]
    run = import_answer_file(question_set, "vector", as_lines(rows), "a.jsonl", by=make_user())
    assert run.state == Run.State.COMPLETED
    assert not run.judges.exists()
    scores = Score.objects.filter(run=run, status="scored").values_list(
        "answer__question__external_id", "metric__name", "value"
    )
    values = {(question, metric): value for question, metric, value in scores}
    assert values[("q1", "keyword_hit")] == 1
    assert values[("q2", "keyword_hit")] == 0
    assert values[("q1", "latency")] == 2.5
    assert ("q2", "latency") not in values


def test_every_field_of_a_row_is_stored() -> None:
    row = {
        "question_id": "q1",
        "answer": " City 1. ",
        "contexts": [{"id": "c1", "text": "City 1 is the capital.", "score": 0.5, "article": "§1"}, "A text alone."],
        "retrieved_context_ids": ["c1", "c9"],
        "latency_seconds": 1.5,
        "confidence": 0.25,
        "sample": 2,
        "model": "m",
    }
    import_rows(make_capitals(1), [row])
    answer = Answer.objects.get()
    assert (answer.text, answer.status, answer.sample, answer.confidence) == (" City 1. ", "ok", 2, 0.25)
    assert (answer.retrieves, answer.retrieved_ids, answer.metadata) == (True, ["c1", "c9"], {"model": "m"})
    first_context, second_context = Context.objects.order_by("position")
    assert (first_context.chunk_id, first_context.score, first_context.metadata) == ("c1", 0.5, {"article": "§1"})
    assert (second_context.chunk_id, second_context.text) == ("", "A text alone.")


def test_null_contexts_and_empty_contexts_are_distinguished() -> None:
    import_rows(
        make_capitals(2),
        [{"question_id": "q1", "answer": "x", "contexts": None}, {"question_id": "q2", "answer": "x", "contexts": []}],
    )
    retrieves = dict(Answer.objects.values_list("question__external_id", "retrieves"))
    assert retrieves == {"q1": False, "q2": True}


def test_row_with_an_error_is_a_failed_answer_with_failed_scores() -> None:
    rows = [{"question_id": "q1", "error": "timeout after 60 s"}, {"question_id": "q2", "answer": "x"}]
    run = import_answer_file(make_capitals(2), "vector", as_lines(rows), "a.jsonl", by=None)
    answer = Answer.objects.get(status="failed")
    assert (answer.question.external_id, answer.reason) == ("q1", "reported: timeout after 60 s")
    scores = Score.objects.filter(run=run, answer=answer)
    hit = scores.get(metric__name="keyword_hit")
    assert (hit.status, hit.value, hit.reason) == ("failed", None, "upstream: reported: timeout after 60 s")
    assert not scores.filter(status="scored").exists()
    assert run.state == Run.State.INCOMPLETE


def test_row_with_only_passages_among_answers_is_a_failed_answer() -> None:
    import_rows(make_capitals(2), [{"question_id": "q1", "contexts": ["x"]}, {"question_id": "q2", "answer": "x"}])
    assert Answer.objects.get(status="failed").reason == "no_answer"


def test_file_with_only_passages_is_a_retrieval_evaluation() -> None:
    question_set = make_capitals(2, ground_truth_chunk_ids=("c1",))
    rows = [{"question_id": f"q{n}", "retrieved_context_ids": ["c1", "c2"]} for n in (1, 2)]
    run = import_answer_file(question_set, "vector", as_lines(rows), "a.jsonl", by=None)
    assert run.answer_set.evaluation_type == "retrieval_only"
    hits = Score.objects.filter(run=run, metric__name="keyword_hit")
    assert {(s.status, s.reason) for s in hits} == {("not_applicable", "not_generated")}
    assert run.state == Run.State.COMPLETED


def test_question_may_be_identified_by_unique_text() -> None:
    question_set = make_capitals(2)
    import_rows(question_set, [{"question": " What is the capital of country 2? ", "answer": "x"}])
    assert Answer.objects.get().question.external_id == "q2"


def test_rows_without_a_known_question_are_reported_by_line() -> None:
    question_set = make_question_set(
        make_project(),
        [
            question_spec(1, category="c"),
            question_spec(2, category="c", text="Same?"),
            question_spec(3, category="c", text="Same?"),
        ],
    )
    rows = [
        {"question_id": "q1", "answer": "fine"},
        {"question_id": "q9x", "answer": "x"},
        {"question_id": "completely else", "answer": "x"},
        {"question": "Same?", "answer": "x"},
        {"question": "Never asked?", "answer": "x"},
        {"question": "What is the capital of country 1?", "answer": "twice"},
    ]
    assert import_problems(question_set, rows) == [
        (2, "question_id", "question_unknown"),
        (3, "question_id", "question_unknown"),
        (4, "question", "question_ambiguous"),
        (5, "question", "question_text_unknown"),
        (6, "sample", "duplicate_answer"),
    ]


def test_unknown_id_is_reported_with_similar_ids() -> None:
    question_set = make_question_set(make_project(), [question_spec(1, id="Novel-73586ddc", category="c")])
    with pytest.raises(InvalidFile) as error:
        import_rows(question_set, [{"question_id": "Novel-73586dd", "answer": "x"}])
    assert explain(error.value.problems[0]) == (
        "a.jsonl, line 1, question_id: The question set has no question with the ID “Novel-73586dd”. "
        "Similar: Novel-73586ddc."
    )


def test_two_answers_to_one_question_need_different_samples() -> None:
    rows = [{"question_id": "q1", "answer": "x"}, {"question_id": "q1", "answer": "y"}]
    assert import_problems(make_capitals(1), rows) == [(2, "sample", "duplicate_answer")]
    numbered = [row | {"sample": n} for n, row in enumerate(rows)]
    assert import_rows(make_capitals(1), numbered).run.answer_set.answers.count() == 2


def test_missing_answers_are_allowed_and_reported() -> None:
    result = import_rows(make_capitals(3), [{"question_id": "q2", "answer": "x"}])
    assert result.missing == ("q1", "q3")
    assert "2 question(s) have no answer: q1, q3." in explain(result.remarks[-1])


def test_different_question_text_is_remarked() -> None:
    result = import_rows(make_capitals(1), [{"question_id": "q1", "question": "What WAS the capital?", "answer": "x"}])
    assert [r.code for r in result.remarks] == ["question_text_differs"]


def test_repeated_import_returns_the_existing_run_with_a_remark() -> None:
    question_set = make_capitals(2)
    rows = [{"question_id": f"q{n}", "answer": f"city {n}"} for n in (1, 2)]
    result = import_rows(question_set, rows)
    reordered = as_json([row | {"note": "other metadata"} for row in reversed(rows)])
    repeated = import_answers(
        question_set, "vector", read_answers(reordered, "b.json"), data=reordered, file_name="b.json", by=None
    )
    assert (result.created, repeated.created) == (True, False)
    assert repeated.run == result.run
    assert "answers_unchanged" in {r.code for r in repeated.remarks}
    assert (AnswerSet.objects.count(), Run.objects.count(), Answer.objects.count()) == (1, 1, 2)


@pytest.mark.parametrize(
    "change", [{"text": "another"}, {"system": "graph"}, {"k": 3}, {"contexts": ["c"]}, {"latency": 1.0}, {"sample": 1}]
)
def test_any_other_difference_creates_an_answer_set(change: dict[str, Any]) -> None:
    question_set = make_capitals(1)
    import_rows(question_set, [{"question_id": "q1", "answer": "x"}])
    row = {"question_id": "q1", "answer": change.get("text", "x"), "sample": change.get("sample", 0)}
    row |= {"contexts": change["contexts"]} if "contexts" in change else {}
    row |= {"latency_seconds": change["latency"]} if "latency" in change else {}
    assert import_rows(question_set, [row], change.get("system", "vector"), k=change.get("k", 5)).created
    assert AnswerSet.objects.count() == 2


def test_answers_of_a_cancelled_run_get_a_new_run() -> None:
    question_set = make_capitals(1)
    result = import_rows(question_set, [{"question_id": "q1", "answer": "x"}])
    Run.objects.filter(pk=result.run.pk).update(state=Run.State.CANCELLED)
    repeated = import_rows(question_set, [{"question_id": "q1", "answer": "x"}])
    assert (repeated.created, repeated.run.answer_set) == (False, result.run.answer_set)
    assert repeated.run != result.run


def test_repeated_imports_share_one_system_version() -> None:
    question_set = make_capitals(1)
    for text in ("x", "y"):
        import_rows(question_set, [{"question_id": "q1", "answer": text}])
    version = SystemVersion.objects.get()
    assert (version.system.name, version.version, version.adapter) == ("vector", 1, "recorded")


def test_system_name_of_the_file_is_the_default_and_differences_are_remarked() -> None:
    question_set = make_capitals(1)
    rows = [{"question_id": "q1", "answer": "x", "system": "graph"}]
    assert import_rows(question_set, rows, "").run.answer_set.system_version.system.name == "graph"
    assert "system_differs" in {r.code for r in import_rows(question_set, rows, "vector").remarks}
    with pytest.raises(DomainError, match="bad_name"):
        import_rows(question_set, [{"question_id": "q1", "answer": "x"}], "")


def test_import_is_audited_with_the_file_hash() -> None:
    result = import_rows(make_capitals(1), [{"question_id": "q1", "answer": "x"}])
    detail = AuditEvent.objects.get(verb="answer_set.imported").detail
    assert detail["sha256"] == result.run.answer_set.file_sha256
    assert len(detail["hash"]) == 64


def test_question_without_reference_keywords_or_category_gets_no_scores() -> None:
    bare = question_spec(1, category="", references=(), keywords=())
    run = import_answer_file(
        make_question_set(make_project(), [bare]),
        "vector",
        as_lines([{"question_id": "q1", "answer": "x"}]),
        "a.jsonl",
        by=None,
    )
    assert run.state == Run.State.COMPLETED
    statuses = dict(Score.objects.filter(run=run).values_list("metric__name", "status"))
    assert {name for name, status in statuses.items() if status == "scored"} == {"dont_know"}
    assert set(statuses.values()) == {"scored", "not_applicable"}


def test_unicode_normalization_applies_to_ids_and_keywords() -> None:
    """The answer has decomposed hangul and full-width digits and is stored unchanged."""
    question_set = make_question_set(
        make_project(), [question_spec(1, id="학칙-1", category="c", text="제15조는?", keywords=(("휴학 15",),))]
    )
    answer_text = normalize("NFD", "휴학") + " １５"
    row = {"question_id": normalize("NFD", "학칙-1"), "answer": answer_text}
    run = import_answer_file(question_set, "vector", as_lines([row]), "a.jsonl", by=None)
    assert Score.objects.get(run=run, metric__name="keyword_hit").value == 1
    assert Answer.objects.get().text == answer_text


def test_earlier_runs_keep_their_question_set_version() -> None:
    project = make_project()
    question_set = import_question_set(project, "capitals", question_file(question(1)), by=None).question_set
    run = import_rows(question_set, [{"question_id": "q1", "answer": "x"}]).run
    import_question_set(project, "capitals", question_file(question(1, question="Changed?")), by=None)
    run.refresh_from_db()
    assert run.answer_set.question_set == question_set
    assert Answer.objects.get().question.text == "What is the capital of country 1?"
