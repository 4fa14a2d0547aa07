"""Queue items as files: a column per reviewer, the authoritative value, escaped formulas, Label Studio both ways."""

from __future__ import annotations

import csv
import io
import json
from io import StringIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.translation import override as override_language

from evaluation.judges.shipped import definitions
from evaluation.messages.explanations import explain, explain_reason
from evaluation.models import Answer, Context, Run, User
from review.decisions.overrides import override
from review.models import Exposure, Rating, ReviewQueue
from review.ratings.import_files import import_ratings
from review.reports.item_export import ITEM_EXPORTS, export_items
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user
from tests.review.builders import assignment_of, rate

pytestmark = pytest.mark.django_db
HOSTILE = ['=HYPERLINK("http://x")', "＝1+1", "\t=1", "+1", "-1+2", "@SUM(A1)", "줄\r\n바꿈", 'quote " and, comma']


@pytest.fixture
def run() -> Run:
    return make_scored_run(make_answer_set(make_question_set(specs=8), texts=HOSTILE), metrics=["correctness"])


@pytest.fixture
def queue(run: Run) -> ReviewQueue:
    reviewers = [make_user("reviewer", run.project, username=name) for name in ("anna", "ben")]
    return make_queue(run, reviewers, metrics=["correctness"], reviews_needed=2)


def reviewers_of(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("reviewer__username")]


def answers(run: Run) -> list[Answer]:
    return list(run.answer_set.answers.order_by("question__position"))


def rate_items(queue: ReviewQueue, run: Run) -> None:
    """Rate the first answer twice, finalise and repeat Anna's rating, and mark the second as not judgeable."""
    row = definitions(["correctness"])["correctness"]
    anna, ben = reviewers_of(queue)
    first, second, *_ = answers(run)
    assignment = assignment_of(queue, first, anna, run)
    rate(assignment, row, 2, comment="=cmd|' /C calc'!A0")
    rate(assignment, row, 3, phase="final")
    rate(assignment_of(queue, first, ben, run), row, 4)
    rate(assignment_of(queue, first, anna, run, occasion=2), row, 1)
    rate(assignment_of(queue, second, anna, run), row, None)


def table(queue: ReviewQueue, reviewer: User | None = None) -> list[dict[str, str]]:
    data = b"".join(export_items(queue, "csv", reviewer).chunks)
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def lines(queue: ReviewQueue, reviewer: User | None = None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(export_items(queue, "jsonl", reviewer).chunks).splitlines()]


def test_export_has_a_row_per_item_and_a_column_per_reviewer(run: Run, queue: ReviewQueue) -> None:
    rate_items(queue, run)
    rows = table(queue)
    assert len(rows) == 8
    first, second = rows[0], rows[1]
    assert (first["question_id"], first["correctness.judge"], first["run"]) == ("q1", "1.0", str(run.pk))
    assert [first[f"correctness.anna.{name}"] for name in ("initial", "final", "repeat")] == ["2.0", "3.0", "1.0"]
    assert first["correctness.ben.initial"] == "4.0"
    # what counts is the mean of anna's final 3 and ben's 4; the repeat is nowhere in it
    assert (first["correctness.authoritative"], first["correctness.source"]) == ("3.5", "review")
    assert (second["correctness.anna.initial"], second["correctness.source"]) == ("?", "judge")
    assert first["contexts"].startswith("[1] ")
    assert first["chunk_ids"] == "[1] c1"


def test_passage_ids_are_listed_under_passage_numbers(run: Run, queue: ReviewQueue) -> None:
    answer = answers(run)[0]
    Context.objects.create(answer=answer, position=1, text="Without an id.")
    Context.objects.create(answer=answer, position=2, chunk_id="=doc#3", text="Third.")
    first, second = table(queue)[:2]
    assert first["chunk_ids"] == "[1] c1\n[3] =doc#3"  # never a formula: the number stands in front
    assert "[2] Without an id." in first["contexts"]
    assert second["chunk_ids"] == "[1] c1"
    sheet = openpyxl.load_workbook(io.BytesIO(b"".join(export_items(queue, "xlsx").chunks))).worksheets[0]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows(max_row=2)]
    assert dict(zip(*rows, strict=True))["chunk_ids"] == first["chunk_ids"]
    anna, _ben = reviewers_of(queue)
    rate(assignment_of(queue, answer, anna, run), definitions(["correctness"])["correctness"], 2)
    assert table(queue, anna)[0]["chunk_ids"] == first["chunk_ids"]


def test_an_override_is_the_authoritative_value(run: Run, queue: ReviewQueue) -> None:
    lead = make_user("lead", run.project)
    override(answers(run)[0], definitions(["correctness"])["correctness"], value=5, reason="seen", by=lead)
    assert (table(queue)[0]["correctness.authoritative"], table(queue)[0]["correctness.source"]) == ("5.0", "override")


def test_hostile_text_is_escaped_in_tables_and_verbatim_in_json_lines(run: Run, queue: ReviewQueue) -> None:
    rate_items(queue, run)
    rows = table(queue)
    starts = {row["answer"][0] for row in rows if row["answer"].lstrip("'").strip()[0] in "=＝+-@"}
    assert starts == {"'"}
    assert rows[0]["correctness.anna.comment"].startswith("'=cmd")
    assert [record["answer"] for record in lines(queue)] == HOSTILE
    assert lines(queue)[0]["metrics"]["correctness"]["ratings"][0]["comment"].startswith("=cmd")
    book = openpyxl.load_workbook(io.BytesIO(b"".join(export_items(queue, "xlsx").chunks)))
    sheet = book.worksheets[0]
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
    assert sheet.max_row == 9


def test_reviewer_exports_own_rated_items_without_judge_or_colleagues(run: Run, queue: ReviewQueue) -> None:
    rate_items(queue, run)
    anna, ben = reviewers_of(queue)
    client = Client()
    client.force_login(ben)
    for name in ("csv", "jsonl"):
        response = client.get(reverse("queue-export", args=[queue.pk]), {"format": name})
        body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
        assert "anna" not in body
        assert ".judge" not in body
        assert '"judge"' not in body
        assert "authoritative" not in body
        assert str(run.answer_set.system_version) not in body
    assert [record["question_id"] for record in lines(queue, ben)] == ["q1"]
    assert len(lines(queue, anna)) == 2
    assert not Exposure.objects.exists()


def test_exposure_is_recorded_for_a_lead_who_rates_in_the_queue(run: Run, queue: ReviewQueue) -> None:
    lead = make_user("lead", run.project)
    queue.members.create(reviewer=lead)
    client = Client()
    client.force_login(lead)
    response = client.get(reverse("queue-export", args=[queue.pk]), {"format": "csv"})
    b"".join(response.streaming_content)  # type: ignore[attr-defined]
    assert Exposure.objects.get().via == "items"
    assert client.get(reverse("queue-export", args=[queue.pk]), {"format": "exe"}).status_code == 404


def test_queries_do_not_grow_with_the_items(run: Run, queue: ReviewQueue, django_assert_max_num_queries: Any) -> None:
    rate_items(queue, run)
    with django_assert_max_num_queries(20):
        table(queue)


def test_the_command_writes_every_format(queue: ReviewQueue, tmp_path: Path) -> None:
    files = [tmp_path / f"items.{ending}" for ending in ITEM_EXPORTS.extensions]
    arguments = [argument for file in files for argument in ("--output", str(file))]
    call_command("export_items", str(queue.pk), *arguments, stdout=StringIO())
    assert all(file.stat().st_size > 50 for file in files)
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_label_studio_tasks_return_as_ratings(run: Run, queue: ReviewQueue, tmp_path: Path) -> None:
    tasks = json.loads(b"".join(export_items(queue, "label_studio").chunks))
    assert len(tasks) == 8
    assert set(tasks[0]) == {"data"}
    assert set(tasks[0]["data"]) == {
        "question_id",
        "sample",
        "question",
        "references",
        "answer",
        "contexts",
        "answer_key",
    }
    for number, task in enumerate(tasks):
        result = {"from_name": "correctness", "to_name": "answer", "type": "choices"}
        result["value"] = {"choices": [str(1 + number % 5)]}  # type: ignore[assignment]
        task["annotations"] = [{"completed_by": 4, "result": [result]}]
    file = tmp_path / "done.json"
    file.write_text(json.dumps(tasks))
    imported = import_ratings(run, file.read_bytes(), "done.json", annotators={"4": "carol"})
    assert (imported.human, imported.authors) == (8, ("carol",))
    assert list(Rating.objects.order_by("pk").values_list("value", flat=True)) == [1, 2, 3, 4, 5, 1, 2, 3]
    output = StringIO()
    call_command(
        "import_ratings", str(file), "--run", str(run.pk), "--label-studio", "--annotator", "4=carol", stdout=output
    )
    assert output.getvalue().startswith("0 ratings")
    assert b'name="correctness"' in b"".join(export_items(queue, "label_studio_config").chunks)


def test_label_studio_ratings_go_to_the_answers_of_each_run() -> None:
    questions = make_question_set(specs=3)
    runs = [make_scored_run(make_answer_set(questions, texts=[text])) for text in ("one", "other")]
    queue = make_queue(
        runs, reviewers=[make_user("reviewer", questions.project)], metrics=["correctness"], strategy="all"
    )
    tasks = json.loads(b"".join(export_items(queue, "label_studio").chunks))
    assert len(tasks) == 6
    for entry in tasks:  # 2 for the one system's answers, 5 for the other's
        value = {"choices": ["2" if entry["data"]["answer"] == "one" else "5"]}
        result = {"from_name": "correctness", "to_name": "answer", "type": "choices", "value": value}
        entry["annotations"] = [{"completed_by": 4, "result": [result]}]
    for run, value in zip(runs, (2, 5), strict=True):
        imported = import_ratings(run, json.dumps(tasks).encode(), "done.json", annotators={})
        assert (imported.human, [(entry.code, entry.params["rows"]) for entry in imported.remarks]) == (
            3,
            [("tasks_of_other_answers", 3)],
        )
        assert "3 ratings are for answers of other runs" in explain(imported.remarks[0])
        rating_values = Rating.objects.filter(answer__answer_set=run.answer_set).values_list("value", flat=True)
        assert list(rating_values) == [value] * 3


def test_queue_of_named_reviewers_keeps_columns_of_former_members(run: Run) -> None:
    reviewers = [make_user("reviewer", run.project) for _ in range(2)]
    queue = make_queue(run, reviewers, metrics=["correctness"], distribution="round_robin")
    assert {f"correctness.{reviewer.username}.initial" for reviewer in reviewers} < set(table(queue)[0])


@pytest.mark.parametrize("language", ["en", "ko"])
def test_workbook_explains_missing_values_and_program_files_keep_the_code(language: str) -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=2)), values=[3, None], metrics=["correctness"])
    queue = make_queue(run, 1, metrics=["correctness"])
    with override_language(language):  # it is written while it is sent, when the language may be another
        export_file, reason_text = export_items(queue, "xlsx"), explain_reason("timeout")
        assert [row["correctness.judge_reason"] for row in table(queue)] == ["", "timeout"]
        assert lines(queue)[1]["metrics"]["correctness"]["judge"]["reason"] == "timeout"
    sheet = openpyxl.load_workbook(io.BytesIO(b"".join(export_file.chunks))).active
    header, *rows = ([cell.value for cell in row] for row in sheet.iter_rows())
    assert [row[header.index("correctness.judge_reason")] or "" for row in rows] == ["", reason_text]
    assert reason_text != "timeout"
