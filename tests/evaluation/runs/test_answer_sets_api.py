"""REST endpoint ``answer-sets/``: upload of answer files; reading of judges, rubrics and profiles."""

from __future__ import annotations

import pytest

from evaluation.judges.shipped import baseline_judge, profile_row, save_judge, shipped_rubric_row
from evaluation.models import AnswerSet, Endpoint, Run
from tests.evaluation.datasets.sources import as_json, as_lines
from tests.evaluation.rest.clients import evaluator, viewer
from tests.factories import make_project, make_question_set, question_spec

pytestmark = pytest.mark.django_db

ROWS = [{"question_id": f"q{n}", "answer": f"It is city {n}."} for n in (1, 2)]


def test_uploaded_file_creates_answers_and_a_run_scored_by_rules() -> None:
    question_set = make_question_set(specs=[question_spec(n, category="c") for n in (1, 2, 3)])
    caller = evaluator(question_set.project)
    response = caller.upload(
        "answer-sets/", as_lines(ROWS), "a.jsonl", question_set=question_set.pk, system="vector", k=3
    )
    body = response.json()
    assert response.status_code == 201, response.content
    assert (body["created"], body["missing"]) == (True, ["q3"])
    assert (body["answer_set"]["system"], body["answer_set"]["answers"], body["answer_set"]["k"]) == ("vector", 2, 3)
    assert (body["run"]["status"], body["run"]["k"]) == ("completed", 3)
    run = caller.client.get(body["run"]["links"]["self"]).json()
    assert run["means"]["keyword_hit"] == {"mean": 1.0, "scored": 2, "failed": 0, "not_applicable": 0}
    repeated = caller.upload(
        "answer-sets/", as_lines(ROWS), "b.jsonl", question_set=question_set.pk, system="vector", k=3
    )
    assert (repeated.status_code, repeated.json()["run"]["id"]) == (200, body["run"]["id"])


def test_the_body_may_be_the_file_itself() -> None:
    question_set = make_question_set(specs=3)
    address = f"answer-sets/?question_set={question_set.pk}&system=vector"
    assert evaluator(question_set.project).send(address, as_json(ROWS)).status_code == 201


@pytest.mark.parametrize("missing_field", ["question_set", "system", "file"])
def test_missing_field_is_named(missing_field: str) -> None:
    question_set = make_question_set(specs=3)
    fields = {"question_set": question_set.pk, "system": "s"} | {"file": None}
    fields.pop(missing_field)
    caller = evaluator(question_set.project)
    fields.pop("file", None)
    if missing_field == "file":
        response = caller.client.post("/api/v1/answer-sets/", fields)
    else:
        response = caller.upload("answer-sets/", as_lines(ROWS), **fields)
    assert (response.status_code, list(response.json()["errors"])) == (400, [missing_field])


def test_problems_have_lines_and_nothing_is_imported() -> None:
    question_set = make_question_set(specs=1)
    response = evaluator(question_set.project).upload(
        "answer-sets/", as_lines(ROWS), "a.jsonl", question_set=question_set.pk, system="s"
    )
    assert response.status_code == 400
    assert [(p["line"], p["field"]) for p in response.json()["problems"]] == [(2, "question_id")]
    assert not AnswerSet.objects.exists()
    assert not Run.objects.exists()


@pytest.mark.parametrize("k", ["0", "51", "x"])
def test_a_k_out_of_range_is_400(k: str) -> None:
    question_set = make_question_set(specs=3)
    response = evaluator(question_set.project).upload(
        "answer-sets/", as_lines(ROWS), question_set=question_set.pk, system="s", k=k
    )
    assert (response.status_code, list(response.json()["errors"])) == (400, ["k"])


def test_a_judge_shows_neither_address_nor_key_of_its_endpoint() -> None:
    project = make_project()
    endpoint = Endpoint.objects.create(name="local", base_url="http://secret.host:1", key_env="CONCORD_KEY_NAME")
    judge = save_judge(project, "strict", endpoint, model="m", language="en")
    response = viewer(project).get(f"judges/{judge.pk}/")
    assert (response.json()["endpoint"], response.json()["is_baseline"]) == ("local", False)
    assert b"secret" not in response.content.lower()


def test_baseline_judge_is_marked() -> None:
    judge = baseline_judge(make_project(), "ko")
    body = viewer(judge.project).get(f"judges/{judge.pk}/").json()
    assert (body["name"], body["is_baseline"], body["endpoint"], body["language"]) == ("baseline", True, None, "ko")


def test_rubrics_and_profiles_are_shown_with_their_content() -> None:
    project = make_project()
    caller = viewer(project)
    rubric = shipped_rubric_row("answer_quality", "ko")
    profile = profile_row(project, "graphrag")
    assert caller.get(f"rubrics/{rubric.pk}/").json()["spec"]["family"] == "answer_quality"
    rows = caller.get("rubrics/", language="ko", family="answer_quality").json()["results"]
    assert [row["id"] for row in rows] == [rubric.pk]
    parts = caller.get(f"profiles/{profile.pk}/").json()["spec"]["parts"]
    assert {part["metric"]: part["weight"] for part in parts}["correctness"] == 0.25


def test_column_map_is_applied() -> None:
    question_set = make_question_set(specs=1)
    content = as_json([{"nr": "q1", "said": "so"}])
    column_map = "answers: {question_id: nr, answer: said}"
    fields = {"question_set": question_set.pk, "system": "s", "map": column_map}
    response = evaluator(question_set.project).upload("answer-sets/", content, "a.json", **fields)
    assert response.status_code == 201
    assert "Read as map: nr → question_id; said → answer." in response.content.decode()


def test_passages_without_any_match_are_refused_unless_accepted() -> None:
    question_set = make_question_set(specs=[question_spec(1, ground_truth_chunk_ids=("guide-1",))])
    content = as_lines([{"question_id": "q1", "answer": "city 1", "contexts": [{"id": "Guide 1", "text": "A guide."}]}])
    caller, fields = evaluator(question_set.project), {"question_set": question_set.pk, "system": "s"}
    response = caller.upload("answer-sets/", content, "a.jsonl", **fields)
    assert response.status_code == 400
    assert [problem["code"] for problem in response.json()["problems"]] == ["passages_unmatched"]
    assert not AnswerSet.objects.exists()
    accepted = caller.upload("answer-sets/", content, "a.jsonl", accept_unknown_passages="true", **fields)
    assert accepted.status_code == 201
    assert "passages_unmatched" in [remark["code"] for remark in accepted.json()["remarks"]]


def test_ambiguous_encoding_of_answers_must_be_named() -> None:
    question_set = make_question_set(specs=1)
    content = "question_id,answer\nq1,It’s the landlord’s café\n".encode("cp1252")
    caller, fields = evaluator(question_set.project), {"question_set": question_set.pk, "system": "s"}
    response = caller.upload("answer-sets/", content, "a.csv", **fields)
    assert [(p["code"], p["line"]) for p in response.json()["problems"]] == [("encoding_western", 2)]
    assert caller.upload("answer-sets/", content, "a.csv", encoding="cp1252", **fields).status_code == 201
    assert AnswerSet.objects.get().answers.get().text == "It’s the landlord’s café"
    assert caller.upload("answer-sets/", content, "a.csv", encoding="latin-9", **fields).status_code == 400


def test_unknown_columns_are_refused_with_columns_and_map() -> None:
    question_set = make_question_set(specs=[question_spec(n, category="c") for n in (1, 2)])
    caller = evaluator(question_set.project)
    table = b"Q no,Bot reply,passage_1,passage_2\nq1,It is city 1.,one,two\nq2,It is city 2.,three,\n"
    options = {"question_set": question_set.pk, "system": "s"}
    refused = caller.upload("answer-sets/", table, "a.csv", **options)
    (problem,) = refused.json()["problems"]
    assert (refused.status_code, problem["code"]) == (400, "columns_unknown")
    assert problem["params"]["columns"] == "Q no, Bot reply, passage_1, passage_2"
    assert caller.upload("answer-sets/", table, "a.csv", map=problem["params"]["map"], **options).status_code == 201
    assert [answer.contexts.count() for answer in AnswerSet.objects.get().answers.order_by("pk")] == [2, 1]
