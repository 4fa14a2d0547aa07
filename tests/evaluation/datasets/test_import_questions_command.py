"""``import_questions`` prints the version that holds the content, or every problem as file:line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evaluation.models import QuestionSet
from tests.evaluation.datasets.sources import as_json, question
from tests.factories import make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "capitals.json"
    path.write_bytes(as_json([question(1), question(2)]))
    return path


def call(file: Path, *arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("import_questions", str(file), *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_command_prints_the_imported_version(file: Path) -> None:
    make_project()
    assert call(file) == ("Imported as capitals v1 with 2 question(s).\n", "")
    assert call(file)[0] == "No changes: capitals v1 has exactly this content and is used.\n"


def test_json_output_describes_the_version(file: Path) -> None:
    make_project()
    facts = json.loads(call(file, "--format", "json", "--name", "cities")[0])
    question_set = QuestionSet.objects.get()
    assert facts == {
        "question_set": question_set.pk,
        "name": "cities",
        "version": 1,
        "hash": question_set.content_hash,
        "created": True,
        "metadata_not_taken_over": [],
    }


def test_dry_run_prints_the_difference_and_imports_nothing(file: Path) -> None:
    make_project()
    call(file)
    file.write_bytes(as_json([question(2, difficulty="hard"), question(3)]))
    out, _ = call(file, "--dry-run")
    lines = out.splitlines()
    assert [lines[0], lines[1]] == ["capitals: 2", "capitals\t2"]
    assert lines[-3:] == ["+\tq3\t", "-\tq1\t", "~\tq2\tdifficulty"]
    assert "question\tquestion" in lines
    assert QuestionSet.objects.count() == 1
    facts = json.loads(call(file, "--dry-run", "--format", "json")[0])
    assert (facts["newest"], facts["difference"]["added"]) == ("capitals v1", ["q3"])


def test_metadata_not_adopted_is_reported(file: Path) -> None:
    make_project()
    file.write_bytes(as_json([question(1, source="atlas")]))
    call(file)
    file.write_bytes(as_json([question(1, source="globe")]))
    assert "Metadata that differs and was not imported: source." in call(file)[1]


def test_problems_are_printed_one_per_line_on_stderr(file: Path) -> None:
    make_project()
    file.write_text('[\n{"id": "a", "category": "c"},\n{"id": "a", "category": "c", "question": "?", "hops": "x"}\n]')
    err = io.StringIO()
    with pytest.raises(CommandError, match="2 problem") as error:
        call_command("import_questions", str(file), stderr=err)
    first, second = err.getvalue().splitlines()
    assert error.value.returncode == 1
    assert first.startswith("capitals.json:2 question The field is missing or empty.")
    assert second.startswith("capitals.json:3 hops “x” isn't a whole number.")
    assert not QuestionSet.objects.exists()


def test_project_is_required_with_several_projects(file: Path) -> None:
    with pytest.raises(CommandError):
        call(file)
    project = make_project()
    call(file)
    make_project()
    with pytest.raises(CommandError):
        call(file)
    call(file, "--project", project.name)
    assert QuestionSet.objects.get().project == project


def test_group_by_groups_questions_by_a_field(file: Path) -> None:
    make_project()
    file.write_bytes(as_json([question(1, document="d1"), question(2, document="d1")]))
    call(file, "--group-by", "document")
    assert set(QuestionSet.objects.get().questions.values_list("group", flat=True)) == {"d1"}


def test_missing_file_is_a_usage_error(file: Path) -> None:
    with pytest.raises(CommandError) as error:
        call(file.with_name("absent.yaml"))
    assert error.value.returncode == 2


def test_map_file_locates_the_fields(tmp_path: Path) -> None:
    make_project()
    records, map_file = tmp_path / "records.json", tmp_path / "map.yaml"
    records.write_text('{"items": [{"ask": {"text": "q"}, "gold": "a"}]}', encoding="utf-8")
    map_file.write_text("rows: items\nquestions: {question: ask.text, expected_answer: gold}\n", encoding="utf-8")
    out, remarks = call(records, "--map", str(map_file), "--dry-run")
    assert out.splitlines()[2:] == ["ask.text\tquestion", "gold\texpected_answer"]
    assert "Read as map.yaml: ask.text → question; gold → expected_answer." in remarks
    call(records, "--map", str(map_file))
    assert QuestionSet.objects.get().questions.get().spec["references"] == ["a"]
    map_file.write_text("questions: {question: 'ask['}", encoding="utf-8")
    problems = io.StringIO()
    with pytest.raises(CommandError):
        call_command("import_questions", str(records), "--map", str(map_file), stderr=problems)
    assert "map.yaml questions.question.0 The map file doesn't have" in problems.getvalue()


def test_relevance_judgements_are_added_to_the_questions(tmp_path: Path) -> None:
    make_project()
    topics, qrels = tmp_path / "topics.tsv", tmp_path / "test.qrels"
    topics.write_text("1\tWhat?\n2\tWho?\n", encoding="utf-8")
    qrels.write_text("1 0 d1 1\n1 0 d2 0\n", encoding="utf-8")
    assert "passages to find for 1 question(s)" in call(topics, "--qrels", str(qrels))[1]
    specs = QuestionSet.objects.get().questions.order_by("position").values_list("spec", flat=True)
    assert [spec["ground_truth_chunk_ids"] for spec in specs] == [["d1"], []]
