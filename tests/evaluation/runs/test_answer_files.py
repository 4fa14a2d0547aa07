"""An answer file becomes an answer set and a run with its rule metrics, or every problem with its line."""

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


def capitals(count: int = 3, **fields: Any) -> QuestionSet:
    """Questions 1 to n about capitals, none of them negative."""
    specs = [question_spec(n, category="capitals", **fields) for n in range(1, count + 1)]
    return make_question_set(make_project(), specs)


def imported(asked: QuestionSet, rows: list[dict[str, Any]], system: str = "vector", **fields: Any) -> ImportedAnswers:
    data = as_lines(rows)
    return import_answers(
        asked, system, read_answers(data, "a.jsonl"), data=data, file_name="a.jsonl", by=None, **fields
    )


def problems(asked: QuestionSet, rows: list[dict[str, Any]]) -> list[tuple[int | None, str, str]]:
    with pytest.raises(InvalidFile) as refused:
        imported(asked, rows)
    assert not AnswerSet.objects.exists()
    assert not System.objects.exists()
    return [(p.line, p.field, p.code) for p in refused.value.problems]


def test_a_file_is_stored_and_scored_by_rules_at_once() -> None:
    """Question 1 is answered with its keyword "city 1", question 2 without its own."""
    asked = capitals(2)
    rows = [
        {"question_id": "q1", "answer": "It is city 1.", "latency_seconds": 2.5},
        {"question_id": "q2", "answer": "Nobody knows."},
    ]
    run = import_answer_file(asked, "vector", as_lines(rows), "a.jsonl", by=make_user())
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


def test_everything_a_row_says_is_kept() -> None:
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
    imported(capitals(1), [row])
    answer = Answer.objects.get()
    assert (answer.text, answer.status, answer.sample, answer.confidence) == (" City 1. ", "ok", 2, 0.25)
    assert (answer.retrieves, answer.retrieved_ids, answer.metadata) == (True, ["c1", "c9"], {"model": "m"})
    first, second = Context.objects.order_by("position")
    assert (first.chunk_id, first.score, first.metadata) == ("c1", 0.5, {"article": "§1"})
    assert (second.chunk_id, second.text) == ("", "A text alone.")


def test_null_contexts_and_no_contexts_found_stay_different() -> None:
    imported(
        capitals(2),
        [{"question_id": "q1", "answer": "x", "contexts": None}, {"question_id": "q2", "answer": "x", "contexts": []}],
    )
    found = dict(Answer.objects.values_list("question__external_id", "retrieves"))
    assert found == {"q1": False, "q2": True}


def test_an_error_is_a_failed_answer_and_its_scores_are_failed_not_zero() -> None:
    rows = [{"question_id": "q1", "error": "timeout after 60 s"}, {"question_id": "q2", "answer": "x"}]
    run = import_answer_file(capitals(2), "vector", as_lines(rows), "a.jsonl", by=None)
    answer = Answer.objects.get(status="failed")
    assert (answer.question.external_id, answer.reason) == ("q1", "reported: timeout after 60 s")
    scores = Score.objects.filter(run=run, answer=answer)
    hit = scores.get(metric__name="keyword_hit")
    assert (hit.status, hit.value, hit.reason) == ("failed", None, "upstream: reported: timeout after 60 s")
    assert not scores.filter(status="scored").exists()
    assert run.state == Run.State.INCOMPLETE


def test_a_row_with_passages_alone_among_answers_is_a_failed_answer() -> None:
    imported(capitals(2), [{"question_id": "q1", "contexts": ["x"]}, {"question_id": "q2", "answer": "x"}])
    assert Answer.objects.get(status="failed").reason == "no_answer"


def test_a_file_of_passages_alone_is_an_evaluation_of_retrieval() -> None:
    asked = capitals(2, ground_truth_chunk_ids=("c1",))
    rows = [{"question_id": f"q{n}", "retrieved_context_ids": ["c1", "c2"]} for n in (1, 2)]
    run = import_answer_file(asked, "vector", as_lines(rows), "a.jsonl", by=None)
    assert run.answer_set.evaluation_type == "retrieval_only"
    hits = Score.objects.filter(run=run, metric__name="keyword_hit")
    assert {(s.status, s.reason) for s in hits} == {("not_applicable", "not_generated")}
    assert run.state == Run.State.COMPLETED


def test_a_question_may_be_named_by_its_text_where_only_one_has_it() -> None:
    asked = capitals(2)
    imported(asked, [{"question": " What is the capital of country 2? ", "answer": "x"}])
    assert Answer.objects.get().question.external_id == "q2"


def test_rows_that_name_no_question_are_listed_with_their_lines_and_nothing_is_imported() -> None:
    asked = make_question_set(
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
    assert problems(asked, rows) == [
        (2, "question_id", "question_unknown"),
        (3, "question_id", "question_unknown"),
        (4, "question", "question_ambiguous"),
        (5, "question", "question_text_unknown"),
        (6, "sample", "duplicate_answer"),
    ]


def test_an_unknown_id_comes_with_the_near_ones() -> None:
    asked = make_question_set(make_project(), [question_spec(1, id="Novel-73586ddc", category="c")])
    with pytest.raises(InvalidFile) as refused:
        imported(asked, [{"question_id": "Novel-73586dd", "answer": "x"}])
    assert explain(refused.value.problems[0]) == (
        "a.jsonl, line 1, question_id: The question set has no question with the id “Novel-73586dd”. "
        "Near: Novel-73586ddc."
    )


def test_two_answers_to_one_question_need_different_samples() -> None:
    rows = [{"question_id": "q1", "answer": "x"}, {"question_id": "q1", "answer": "y"}]
    assert problems(capitals(1), rows) == [(2, "sample", "duplicate_answer")]
    numbered = [row | {"sample": n} for n, row in enumerate(rows)]
    assert imported(capitals(1), numbered).run.answer_set.answers.count() == 2


def test_missing_answers_are_allowed_and_reported() -> None:
    done = imported(capitals(3), [{"question_id": "q2", "answer": "x"}])
    assert done.missing == ("q1", "q3")
    assert "2 question(s) have no answer: q1, q3." in explain(done.remarks[-1])


def test_a_question_text_that_differs_from_the_sets_is_remarked() -> None:
    done = imported(capitals(1), [{"question_id": "q1", "question": "What WAS the capital?", "answer": "x"}])
    assert [r.code for r in done.remarks] == ["question_text_differs"]


def test_the_same_answers_again_select_what_is_there_and_say_so() -> None:
    asked = capitals(2)
    rows = [{"question_id": f"q{n}", "answer": f"city {n}"} for n in (1, 2)]
    first = imported(asked, rows)
    reordered = as_json([row | {"note": "other metadata"} for row in reversed(rows)])
    second = import_answers(
        asked, "vector", read_answers(reordered, "b.json"), data=reordered, file_name="b.json", by=None
    )
    assert (first.created, second.created) == (True, False)
    assert second.run == first.run
    assert "answers_unchanged" in {r.code for r in second.remarks}
    assert (AnswerSet.objects.count(), Run.objects.count(), Answer.objects.count()) == (1, 1, 2)


@pytest.mark.parametrize(
    "change", [{"text": "another"}, {"system": "graph"}, {"k": 3}, {"contexts": ["c"]}, {"latency": 1.0}, {"sample": 1}]
)
def test_anything_else_is_another_asking(change: dict[str, Any]) -> None:
    asked = capitals(1)
    imported(asked, [{"question_id": "q1", "answer": "x"}])
    row = {"question_id": "q1", "answer": change.get("text", "x"), "sample": change.get("sample", 0)}
    row |= {"contexts": change["contexts"]} if "contexts" in change else {}
    row |= {"latency_seconds": change["latency"]} if "latency" in change else {}
    assert imported(asked, [row], change.get("system", "vector"), k=change.get("k", 5)).created
    assert AnswerSet.objects.count() == 2


def test_answers_of_a_cancelled_run_get_a_new_run() -> None:
    asked = capitals(1)
    first = imported(asked, [{"question_id": "q1", "answer": "x"}])
    Run.objects.filter(pk=first.run.pk).update(state=Run.State.CANCELLED)
    again = imported(asked, [{"question_id": "q1", "answer": "x"}])
    assert (again.created, again.run.answer_set) == (False, first.run.answer_set)
    assert again.run != first.run


def test_a_system_gets_one_recorded_version_however_often_it_is_imported() -> None:
    asked = capitals(1)
    for text in ("x", "y"):
        imported(asked, [{"question_id": "q1", "answer": text}])
    version = SystemVersion.objects.get()
    assert (version.system.name, version.version, version.adapter) == ("vector", 1, "recorded")


def test_the_files_own_system_name_is_taken_where_none_is_given_and_a_different_one_is_remarked() -> None:
    asked = capitals(1)
    rows = [{"question_id": "q1", "answer": "x", "system": "graph"}]
    assert imported(asked, rows, "").run.answer_set.system_version.system.name == "graph"
    assert "system_differs" in {r.code for r in imported(asked, rows, "vector").remarks}
    with pytest.raises(DomainError, match="bad_name"):
        imported(asked, [{"question_id": "q1", "answer": "x"}], "")


def test_the_import_stands_in_the_audit_log_with_the_files_hash() -> None:
    done = imported(capitals(1), [{"question_id": "q1", "answer": "x"}])
    detail = AuditEvent.objects.get(verb="answer_set.imported").detail
    assert detail["sha256"] == done.run.answer_set.file_sha256
    assert len(detail["hash"]) == 64


def test_a_question_without_reference_keywords_or_known_category_has_no_figure_and_breaks_nothing() -> None:
    """U17."""
    bare = question_spec(1, category="", references=(), keywords=())
    run = import_answer_file(
        make_question_set(make_project(), [bare]),
        "vector",
        as_lines([{"question_id": "q1", "answer": "x"}]),
        "a.jsonl",
        by=None,
    )
    assert run.state == Run.State.COMPLETED
    found = dict(Score.objects.filter(run=run).values_list("metric__name", "status"))
    assert {name for name, status in found.items() if status == "scored"} == {"dont_know"}
    assert set(found.values()) == {"scored", "not_applicable"}


def test_hangul_in_either_composition_and_full_width_digits_find_their_question_and_their_keyword() -> None:
    """U18: the answer is decomposed and in full-width digits; what is stored is what came."""
    asked = make_question_set(
        make_project(), [question_spec(1, id="학칙-1", category="c", text="제15조는?", keywords=(("휴학 15",),))]
    )
    said = normalize("NFD", "휴학") + " １５"
    row = {"question_id": normalize("NFD", "학칙-1"), "answer": said}
    run = import_answer_file(asked, "vector", as_lines([row]), "a.jsonl", by=None)
    assert Score.objects.get(run=run, metric__name="keyword_hit").value == 1
    assert Answer.objects.get().text == said


def test_a_new_version_of_the_questions_leaves_earlier_runs_with_theirs() -> None:
    """U15."""
    project = make_project()
    one = import_question_set(project, "capitals", question_file(question(1)), by=None).question_set
    run = imported(one, [{"question_id": "q1", "answer": "x"}]).run
    import_question_set(project, "capitals", question_file(question(1, question="Changed?")), by=None)
    run.refresh_from_db()
    assert run.answer_set.question_set == one
    assert Answer.objects.get().question.text == "What is the capital of country 1?"
