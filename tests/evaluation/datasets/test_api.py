"""``question-sets/``: import by form or body, dry runs, and problems of bad files."""

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


def test_form_with_a_file_creates_a_version(caller: Caller) -> None:
    response = caller.upload("question-sets/", as_json([question(1), question(2)]), "capitals.json")
    body = response.json()
    assert response.status_code == 201
    assert (body["created"], body["question_set"]["name"], body["question_set"]["version"]) == (True, "capitals", 1)
    assert (body["question_set"]["questions"], body["metadata_not_taken_over"]) == (2, [])
    assert body["note"] == "Imported as capitals v1 with 2 question(s)."
    question_set = QuestionSet.objects.get()
    assert (question_set.created_by, question_set.pk) == (caller.user, body["question_set"]["id"])


def test_repeated_file_is_200_and_lists_metadata_not_adopted(caller: Caller) -> None:
    caller.upload("question-sets/", as_json([question(1, source="a")]))
    response = caller.upload("question-sets/", as_json([question(1, source="b")]))
    assert response.status_code == 200
    assert (response.json()["created"], response.json()["metadata_not_taken_over"]) == (False, ["source"])


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
def test_body_may_be_the_file(caller: Caller, content: bytes, content_type: str) -> None:
    response = caller.send("question-sets/?name=capitals", content, content_type)
    assert response.status_code == 201, response.content
    assert QuestionSet.objects.get().name == "capitals"


def test_body_may_contain_the_set_name(caller: Caller) -> None:
    response = caller.send("question-sets/", json.dumps({"name": "inside", "questions": [question(1)]}).encode())
    assert response.json()["question_set"]["name"] == "inside"


def test_form_fields_set_the_options(caller: Caller) -> None:
    rows = [question(1, document="d"), question(2, document="d")]
    caller.upload("question-sets/", as_json(rows), name="capitals", group_by="document")
    assert set(Question.objects.values_list("group", flat=True)) == {"d"}


def test_dry_run_returns_the_difference_and_imports_nothing(caller: Caller) -> None:
    caller.upload("question-sets/", as_json([question(1)]), name="capitals")
    changed = as_json([question(1, difficulty="hard", source="a"), question(2)])
    summary = caller.upload("question-sets/", changed, name="capitals", dry_run="true").json()
    assert (summary["questions"], summary["categories"], summary["metadata_keys"]) == (2, {"capitals": 2}, ["source"])
    assert summary["difference"] == {
        "added": ["q2"],
        "removed": [],
        "changed": [{"id": "q1", "fields": [{"field": "difficulty", "before": "", "after": "hard"}]}],
    }
    assert QuestionSet.objects.count() == 1


def test_project_is_required_with_several_projects(caller: Caller) -> None:
    other_project = make_project()
    RoleGrant.objects.create(user=caller.user, project=other_project, role="evaluator")
    caller.client.credentials()
    caller.client.force_authenticate(caller.user)
    body = caller.upload("question-sets/", as_json([question(1)])).json()
    assert body["errors"] == {"project": ["Give the project's ID."]}
    assert caller.upload("question-sets/", as_json([question(1)]), project=other_project.pk).status_code == 201
    assert QuestionSet.objects.get().project == other_project


def test_problems_have_file_line_field_and_message(caller: Caller) -> None:
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
                "message": "x.json, line 3, id: The id “a” appears twice, first in line or row 2.",
            }
        ],
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
    }


def zip_file() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", b"0" * 1_000_000)
    return buffer.getvalue()


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
    "U13 zip": ("x.csv", zip_file()),
    "U13 pdf": ("x.csv", b"%PDF-1.7\n" + b"x" * 100),
    "U13 xlsx": ("x.csv", zip_file()),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_bad_files_return_their_problems_and_leave_no_rows(caller: Caller, fault: str) -> None:
    """Faulty files of the reliability plan, uploaded over the API."""
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


def test_file_name_is_shown_and_never_a_path(caller: Caller) -> None:
    """Django drops unprintable characters from names in forms; the readers escape them elsewhere."""
    response = caller.upload("question-sets/", b"[]", "..\\..\\a\u202eb.json")
    assert response.json()["problems"][0]["file"] == "ab.json"


@pytest.mark.parametrize("how", ["form", "body"])
@override_settings(CONCORD_UPLOAD_BYTES=200_000)
def test_file_over_the_limit_is_413_before_it_is_read(caller: Caller, how: str) -> None:
    content = as_json([question(1, notes="x" * 300_000)])
    response = caller.upload("question-sets/", content) if how == "form" else caller.send("question-sets/", content)
    assert response.status_code == 413
    assert "larger than" in response.json()["detail"]
    assert "CONCORD_UPLOAD_BYTES" in response.json()["detail"]


@override_settings(CONCORD_UPLOAD_BYTES=200_000)
def test_limit_applies_to_the_file_and_not_to_the_form(caller: Caller) -> None:
    padded = as_json([question(1)]) + b" " * 199_000
    assert caller.upload("question-sets/", padded[:200_000]).status_code == 201
    assert caller.upload("question-sets/", padded + b" " * 2_000).status_code == 413


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@override_settings(CONCORD_DISPATCHER="local")
def test_twenty_megabyte_upload_succeeds(caller: Caller) -> None:
    rows = [question(n, notes="x" * 19_000) for n in range(1_000)]
    content = as_json(rows)
    assert 19_000_000 < len(content) < 20 * 1024 * 1024
    assert caller.upload("question-sets/", content).status_code == 202
    assert QuestionSet.objects.get().questions.count() == 1_000


@pytest.mark.parametrize("fields", [{"nmae": "x"}, {"is_superuser": "true"}, {"version": "7"}])
def test_unknown_fields_are_400(caller: Caller, fields: dict[str, Any]) -> None:
    response = caller.upload("question-sets/", as_json([question(1)]), **fields)
    assert response.status_code == 400
    assert list(response.json()["errors"]) == list(fields)
    assert caller.send(f"question-sets/?{next(iter(fields))}=1", as_json([question(1)])).status_code == 400
    assert not QuestionSet.objects.exists()


def test_a_form_without_a_file_or_with_two_is_400(caller: Caller) -> None:
    assert caller.client.post("/api/v1/question-sets/", {"name": "x"}).status_code == 400
    two_files = {"file": io.BytesIO(b"[]"), "other": io.BytesIO(b"[]")}
    assert caller.client.post("/api/v1/question-sets/", two_files).status_code == 400


def test_questions_are_listed_in_order_and_filtered_by_category(caller: Caller) -> None:
    rows = [question(3), question(1, category="rivers", expected_keywords=["a", ["b", "c"]]), question(2)]
    set_id = caller.upload("question-sets/", as_json(rows)).json()["question_set"]["id"]
    path = f"question-sets/{set_id}/questions/"
    assert [q["question_id"] for q in caller.get(path).json()["results"]] == ["q3", "q1", "q2"]
    (river,) = caller.get(path, category="rivers").json()["results"]
    assert river["content"]["keywords"] == [["a"], ["b", "c"]]


def test_list_queries_are_independent_of_the_number_of_sets(django_assert_num_queries: Any) -> None:
    project = make_project()
    caller = viewer(project)
    for _ in range(3):
        make_question_set(project)
    # The token with its user and project, then the page itself, counts and scope in one.
    with django_assert_num_queries(2):
        assert len(caller.get("question-sets/").json()["results"]) == 3


def test_body_without_a_name_is_400(caller: Caller) -> None:
    response = caller.send("question-sets/", as_json([question(1)]))
    assert (response.status_code, list(response.json()["errors"])) == (400, ["name"])


def test_chunked_body_is_411(caller: Caller) -> None:
    response = caller.client.generic(
        "POST", "/api/v1/question-sets/", b"", content_type="application/json", HTTP_TRANSFER_ENCODING="chunked"
    )
    assert response.status_code == 411


def test_schema_describes_forms_with_a_file(client: Client) -> None:
    schemas = client.get("/api/v1/schema/?format=json").json()["components"]["schemas"]
    forms = {
        name for name, schema in schemas.items() if "file" in schema.get("properties", {}) and name.endswith("Form")
    }
    assert forms == {"AnswerForm", "CorpusForm", "QuestionSetForm", "RatingFileForm"}
    assert {schemas[name]["properties"]["file"]["format"] for name in forms} == {"binary"}


def test_dry_run_with_a_map_lists_the_columns(caller: Caller) -> None:
    map_text = "questions: {question: ask, expected_answer: gold}"
    content = json.dumps([{"ask": "Why?", "gold": "so"}]).encode()
    summary = caller.upload("question-sets/", content, "a.json", map=map_text, dry_run="true").json()
    assert (summary["shape"], summary["columns"]) == ("map", {"ask": "question", "gold": "expected_answer"})
    assert caller.upload("question-sets/", content, "a.json", map=map_text).status_code == 201
    assert Question.objects.get().spec["references"] == ["so"]
    response = caller.upload("question-sets/", content, "a.json", map="rows: x")
    assert (response.status_code, "map_invalid" in response.content.decode()) == (400, True)


def test_relevance_judgements_are_uploaded_with_the_file(caller: Caller) -> None:
    assert caller.upload("question-sets/", b"1\tWhat?\n", "topics.tsv", qrels="1 0 d1 1\n").status_code == 201
    assert Question.objects.get().spec["ground_truth_chunk_ids"] == ["d1"]


def test_ambiguous_encoding_of_questions_must_be_chosen(caller: Caller) -> None:
    content = "id,category,question\nq1,c,Who signs the tenant’s lease?\n".encode("cp1252")
    unchosen = caller.upload("question-sets/", content, "leases.csv")
    assert [(p["code"], p["line"]) for p in unchosen.json()["problems"]] == [("encoding_western", 2)]
    wrong_choice = caller.upload("question-sets/", content, "leases.csv", encoding="utf-8")
    assert [(p["code"], p["line"]) for p in wrong_choice.json()["problems"]] == [("encoding_wrong", 2)]
    assert caller.upload("question-sets/", content, "leases.csv", encoding="cp1252").status_code == 201
    assert Question.objects.get().read().text == "Who signs the tenant’s lease?"
