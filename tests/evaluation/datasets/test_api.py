"""``question-sets/``: import by form, by body, dry runs, and what bad files get."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from django.test import Client, override_settings

from evaluation.models import ImportBatch, Question, QuestionSet, RoleGrant
from tests.evaluation.datasets.sources import as_json, question
from tests.evaluation.rest.clients import Caller, evaluator, viewer
from tests.factories import make_project, make_question_set

pytestmark = pytest.mark.django_db

CSV = "id,category,question,expected_answer\nq1,c,What?,That.\n"


@pytest.fixture
def caller() -> Caller:
    return evaluator(make_project())


def test_a_form_with_a_file_makes_a_version(caller: Caller) -> None:
    response = caller.upload("question-sets/", as_json([question(1), question(2)]), "capitals.json")
    body = response.json()
    assert response.status_code == 201
    assert (body["created"], body["question_set"]["name"], body["question_set"]["version"]) == (True, "capitals", 1)
    assert (body["question_set"]["questions"], body["metadata_not_taken_over"]) == (2, [])
    assert body["note"] == "Imported as capitals v1 with 2 question(s)."
    made = QuestionSet.objects.get()
    assert (made.created_by, made.pk) == (caller.user, body["question_set"]["id"])


def test_the_same_file_again_is_200_and_names_what_was_not_taken_over(caller: Caller) -> None:
    caller.upload("question-sets/", as_json([question(1, source="a")]))
    again = caller.upload("question-sets/", as_json([question(1, source="b")]))
    assert again.status_code == 200
    assert (again.json()["created"], again.json()["metadata_not_taken_over"]) == (False, ["source"])


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (as_json([question(1)]), "application/json"),
        (json.dumps({"categories": {"c": [{"question": "What?"}]}}).encode(), "application/json; charset=utf-8"),
        (b'{"id": "a", "question": "What?"}\n{"id": "b", "question": "Who?"}\n', "application/x-ndjson"),
        (b"categories:\n  c:\n    - question: What?\n", "application/yaml"),
        (CSV.encode(), "text/csv"),
        (CSV.encode("utf-8-sig"), "text/csv"),
        (CSV.encode(), "application/octet-stream"),
    ],
    ids=["list", "categories", "lines", "yaml", "csv", "bom", "unknown type"],
)
def test_the_body_may_be_the_file_itself(caller: Caller, content: bytes, content_type: str) -> None:
    response = caller.send("question-sets/?name=capitals", content, content_type)
    assert response.status_code == 201, response.content
    assert QuestionSet.objects.get().name == "capitals"


def test_a_body_may_name_its_set_itself(caller: Caller) -> None:
    response = caller.send("question-sets/", json.dumps({"name": "inside", "questions": [question(1)]}).encode())
    assert response.json()["question_set"]["name"] == "inside"


def test_options_stand_beside_the_file(caller: Caller) -> None:
    rows = [question(1, document="d"), question(2, document="d")]
    caller.upload("question-sets/", as_json(rows), name="capitals", group_by="document")
    assert set(Question.objects.values_list("group", flat=True)) == {"d"}


def test_a_dry_run_shows_and_imports_nothing(caller: Caller) -> None:
    caller.upload("question-sets/", as_json([question(1)]), name="capitals")
    changed = as_json([question(1, difficulty="hard", source="a"), question(2)])
    shown = caller.upload("question-sets/", changed, name="capitals", dry_run="true").json()
    assert (shown["questions"], shown["categories"], shown["metadata_keys"]) == (2, {"capitals": 2}, ["source"])
    assert shown["difference"] == {
        "added": ["q2"],
        "removed": [],
        "changed": [{"id": "q1", "fields": [{"field": "difficulty", "before": "", "after": "hard"}]}],
    }
    assert QuestionSet.objects.count() == 1


def test_the_project_is_needed_where_there_are_several(caller: Caller) -> None:
    other = make_project()
    RoleGrant.objects.create(user=caller.user, project=other, role="evaluator")
    caller.client.credentials()
    caller.client.force_authenticate(caller.user)
    refused = caller.upload("question-sets/", as_json([question(1)])).json()
    assert refused["errors"] == {"project": ["Name the project by its id."]}
    assert caller.upload("question-sets/", as_json([question(1)]), project=other.pk).status_code == 201
    assert QuestionSet.objects.get().project == other


def test_problems_come_with_file_line_field_and_sentence(caller: Caller) -> None:
    rows = b'[\n{"id": "a", "category": "c", "question": "?"},\n{"id": "a", "category": "c", "question": "!"}\n]'
    response = caller.upload("question-sets/", rows, "x.json")
    assert response.status_code == 400
    assert response.json() == {
        "detail": "invalid_file",
        "problems": [
            {
                "code": "duplicate_id",
                "file": "x.json",
                "line": 3,
                "field": "id",
                "params": {"id": "a", "first_line": 2},
                "more_lines": [],
                "message": "x.json, line 3, id: The id “a” stands twice; first in line or row 2.",
            }
        ],
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
    }


def zipped() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", b"0" * 1_000_000)
    return made.getvalue()


BOMB = b"a: &a [x]\n" + b"".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n".encode() for n in range(9)
)
BAD_FILES: dict[str, tuple[str, bytes]] = {
    "U1 alias bomb": ("x.yaml", BOMB),
    "U2 deep yaml": ("x.yaml", b"[" * 5000 + b"]" * 5000),
    "U3 python tag": ("x.yaml", b"questions: !!python/object/apply:os.system ['x']\n"),
    "U4 coerced id": ("x.yaml", b"questions:\n- {id: 010, question: What?, category: c}\n"),
    "U5 duplicate key": ("x.json", b'[{"id": "a", "question": "?", "question": "!"}]'),
    "U6 NaN": ("x.json", b'[{"id": "a", "question": "?", "hops": NaN}]'),
    "U6 huge number": ("x.json", b'[{"id": "a", "question": "?", "hops": ' + b"9" * 5000 + b"}]"),
    "U6 deep json": ("x.json", b"[" * 100_000 + b"]" * 100_000),
    "U7 surrogate": ("x.json", b'[{"id": "a", "question": "\\ud800"}]'),
    "U7 nul": ("x.json", b'[{"id": "a", "question": "a\\u0000b"}]'),
    "U10 ragged": ("x.csv", b"id,category,question\na,c,What?,more\nb,c\n"),
    "U11 huge field": ("x.csv", b"id,category,question\na,c," + b"x" * 1_100_000 + b"\n"),
    "U13 zip": ("x.csv", zipped()),
    "U13 pdf": ("x.csv", b"%PDF-1.7\n" + b"x" * 100),
    "U13 xlsx": ("x.csv", zipped()),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_bad_files_get_their_problems_and_leave_nothing(caller: Caller, fault: str) -> None:
    """Faults of the reliability plan, through the front door."""
    file_name, content = BAD_FILES[fault]
    responses = [caller.upload("question-sets/", content, file_name)]
    if file_name.endswith("json"):
        responses.append(caller.send("question-sets/?name=x", content))
    for response in responses:
        assert response.status_code == 400
        problems = response.json()["problems"]
        assert problems
        assert all(p["message"] and "Problem “" not in p["message"] for p in problems)
    assert not QuestionSet.objects.exists()
    assert not ImportBatch.objects.exists()


def test_the_file_name_is_shown_and_never_a_path(caller: Caller) -> None:
    """U14. The framework drops what cannot be printed from the names in forms; the readers spell it out elsewhere."""
    response = caller.upload("question-sets/", b"[]", "..\\..\\a\u202eb.json")
    assert response.json()["problems"][0]["file"] == "ab.json"


@pytest.mark.parametrize("how", ["form", "body"])
@override_settings(CONCORD_UPLOAD_BYTES=200_000)
def test_more_than_the_limit_is_413_before_it_is_read(caller: Caller, how: str) -> None:
    content = as_json([question(1, notes="x" * 300_000)])
    response = caller.upload("question-sets/", content) if how == "form" else caller.send("question-sets/", content)
    assert response.status_code == 413
    assert "larger than" in response.json()["detail"]
    assert "CONCORD_UPLOAD_BYTES" in response.json()["detail"]


@override_settings(CONCORD_UPLOAD_BYTES=200_000)
def test_the_limit_is_the_files_not_the_forms(caller: Caller) -> None:
    fits = as_json([question(1)]) + b" " * 199_000
    assert caller.upload("question-sets/", fits[:200_000]).status_code == 201
    assert caller.upload("question-sets/", fits + b" " * 2_000).status_code == 413


@pytest.mark.slow
def test_twenty_megabytes_go_in_one_request(caller: Caller) -> None:
    rows = [question(n, notes="x" * 19_000) for n in range(1_000)]
    content = as_json(rows)
    assert 19_000_000 < len(content) < 20 * 1024 * 1024
    assert caller.upload("question-sets/", content).status_code == 201
    assert Question.objects.count() == 1_000


@pytest.mark.parametrize("fields", [{"nmae": "x"}, {"is_superuser": "true"}, {"version": "7"}])
def test_unknown_fields_are_400(caller: Caller, fields: dict[str, Any]) -> None:
    """A9."""
    response = caller.upload("question-sets/", as_json([question(1)]), **fields)
    assert response.status_code == 400
    assert list(response.json()["errors"]) == list(fields)
    assert caller.send(f"question-sets/?{next(iter(fields))}=1", as_json([question(1)])).status_code == 400
    assert not QuestionSet.objects.exists()


def test_a_form_without_a_file_or_with_two_is_400(caller: Caller) -> None:
    assert caller.client.post("/api/v1/question-sets/", {"name": "x"}).status_code == 400
    two = {"file": io.BytesIO(b"[]"), "other": io.BytesIO(b"[]")}
    assert caller.client.post("/api/v1/question-sets/", two).status_code == 400


def test_questions_are_read_in_the_order_of_the_set_and_by_category(caller: Caller) -> None:
    rows = [question(3), question(1, category="rivers", expected_keywords=["a", ["b", "c"]]), question(2)]
    made = caller.upload("question-sets/", as_json(rows)).json()["question_set"]["id"]
    path = f"question-sets/{made}/questions/"
    assert [q["question_id"] for q in caller.get(path).json()["results"]] == ["q3", "q1", "q2"]
    (river,) = caller.get(path, category="rivers").json()["results"]
    assert river["content"]["keywords"] == [["a"], ["b", "c"]]


def test_lists_cost_the_same_few_queries_for_any_number(django_assert_num_queries: Any) -> None:
    project = make_project()
    someone = viewer(project)
    for _ in range(3):
        make_question_set(project)
    # The token with its user and project, then the page itself, counts and scope in one.
    with django_assert_num_queries(2):
        assert len(someone.get("question-sets/").json()["results"]) == 3


def test_a_body_without_any_name_has_to_be_named(caller: Caller) -> None:
    response = caller.send("question-sets/", as_json([question(1)]))
    assert (response.status_code, list(response.json()["errors"])) == (400, ["name"])


def test_a_body_in_chunks_is_411_and_not_taken_for_an_empty_one(caller: Caller) -> None:
    response = caller.client.generic(
        "POST", "/api/v1/question-sets/", b"", content_type="application/json", HTTP_TRANSFER_ENCODING="chunked"
    )
    assert response.status_code == 411


def test_the_schema_says_that_a_form_brings_the_file_itself(client: Client) -> None:
    told = client.get("/api/v1/schema/?format=json").json()["components"]["schemas"]
    forms = {name for name, one in told.items() if "file" in one.get("properties", {}) and name.endswith("Form")}
    assert forms == {"AnswerForm", "CorpusForm", "QuestionSetForm", "RatingFileForm"}
    assert {told[name]["properties"]["file"]["format"] for name in forms} == {"binary"}


def test_a_map_goes_with_the_file_and_a_dry_run_names_the_columns(caller: Caller) -> None:
    told = "questions: {question: ask, expected_answer: gold}"
    content = json.dumps([{"ask": "Why?", "gold": "so"}]).encode()
    dry = caller.upload("question-sets/", content, "a.json", map=told, dry_run="true").json()
    assert (dry["shape"], dry["columns"]) == ("map", {"ask": "question", "gold": "expected_answer"})
    assert caller.upload("question-sets/", content, "a.json", map=told).status_code == 201
    assert Question.objects.get().spec["references"] == ["so"]
    refused = caller.upload("question-sets/", content, "a.json", map="rows: x")
    assert (refused.status_code, "map_invalid" in refused.content.decode()) == (400, True)


def test_judgements_go_with_the_file(caller: Caller) -> None:
    assert caller.upload("question-sets/", b"1\tWhat?\n", "topics.tsv", qrels="1 0 d1 1\n").status_code == 201
    assert Question.objects.get().spec["ground_truth_chunk_ids"] == ["d1"]


def test_the_encoding_of_questions_is_asked_for_and_named(caller: Caller) -> None:
    content = "id,category,question\nq1,c,Who signs the tenant’s lease?\n".encode("cp1252")
    refused = caller.upload("question-sets/", content, "leases.csv")
    assert [(p["code"], p["line"]) for p in refused.json()["problems"]] == [("encoding_western", 2)]
    wrong = caller.upload("question-sets/", content, "leases.csv", encoding="utf-8")
    assert [(p["code"], p["line"]) for p in wrong.json()["problems"]] == [("encoding_wrong", 2)]
    assert caller.upload("question-sets/", content, "leases.csv", encoding="cp1252").status_code == 201
    assert Question.objects.get().read().text == "Who signs the tenant’s lease?"
