"""The command ``import_answers`` prints the run, or every problem as file:line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluation.models import AnswerSet, Run
from tests.evaluation.datasets.sources import as_lines
from tests.factories import make_project, make_question_set, question_spec

pytestmark = pytest.mark.django_db


def import_file(file: Path, *arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(
        "import_answers", str(file), "--questions", "capitals", "--system", "vector", *arguments, stdout=out, stderr=err
    )
    return out.getvalue(), err.getvalue()


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    specs = [question_spec(n, category="capitals") for n in (1, 2)]
    make_question_set(make_project(), specs, name="capitals")
    file = tmp_path / "answers.jsonl"
    file.write_bytes(as_lines([{"question_id": f"q{n}", "answer": f"city {n}"} for n in (1, 2)]))
    return file


def test_command_prints_the_completed_run(answers: Path) -> None:
    """Standard output has only the run, for programs; hints go to standard error."""
    out, err = import_file(answers, "--k", "3")
    run = Run.objects.get()
    assert out == f"run {run.pk}\n"
    assert "No judge has scored them yet" in err
    assert f"manage.py results {run.pk}" in err
    assert "manage.py evaluate --questions capitals@1 --system vector" in err
    assert (run.state, run.answer_set.k) == (Run.State.COMPLETED, 3)


def test_json_output_lists_created_rows_and_missing_answers(answers: Path) -> None:
    answers.write_bytes(as_lines([{"question_id": "q2", "answer": "x"}]))
    out, err = import_file(answers, "--format", "json")
    run = Run.objects.get()
    expected: dict[str, Any] = {"run": run.pk, "answer_set": run.answer_set_id, "status": "completed"}
    assert json.loads(out) == expected | {"created": True, "missing": ["q1"]}
    assert "1 question(s) have no answer: q1." in err


def test_problems_are_printed_to_standard_error_and_nothing_is_imported(answers: Path) -> None:
    answers.write_bytes(as_lines([{"question_id": "q1", "answer": "x"}, {"question_id": "zzz", "answer": "x"}]))
    err = io.StringIO()
    with pytest.raises(CommandError) as error:
        call_command("import_answers", str(answers), "--questions", "capitals", "--system", "s", stderr=err)
    assert error.value.returncode == 1
    assert err.getvalue().strip() == ("answers.jsonl:2 question_id The question set has no question with the ID “zzz”.")
    assert not AnswerSet.objects.exists()


def test_unknown_question_set_suggests_similar_names(answers: Path) -> None:
    with pytest.raises(CommandError, match="did you mean capitals"):
        call_command("import_answers", str(answers), "--questions", "capital", "--system", "s")


@pytest.mark.parametrize("k", ["0", "51", "many"])
def test_k_out_of_range_is_a_usage_error(answers: Path, k: str) -> None:
    with pytest.raises(CommandError, match="1 to 50"):
        import_file(answers, "--k", k)


def test_missing_file_is_a_usage_error(answers: Path) -> None:
    with pytest.raises(CommandError) as error:
        import_file(answers.with_name("absent.jsonl"))
    assert error.value.returncode == 2


def test_passages_without_any_match_are_refused_unless_accepted(tmp_path: Path) -> None:
    spec = question_spec(1, category="capitals", ground_truth_chunk_ids=("guide-1", "guide-2"))
    make_question_set(make_project(), [spec], name="capitals")
    file = tmp_path / "answers.jsonl"
    file.write_bytes(as_lines([{"question_id": "q1", "answer": "city 1", "retrieved_context_ids": ["Guide 1"]}]))
    err = io.StringIO()
    with pytest.raises(CommandError) as error:
        call_command("import_answers", str(file), "--questions", "capitals", "--system", "vector", stderr=err)
    assert error.value.returncode == 1
    assert "IDs in the file: Guide 1. IDs in the questions: guide-1, guide-2." in err.getvalue()
    assert not AnswerSet.objects.exists()
    assert "None of the passages" in import_file(file, "--accept-unknown-passages")[1]
    assert AnswerSet.objects.get().answers.get().retrieved_ids == ["Guide 1"]


@pytest.mark.slow
def test_unknown_columns_are_one_problem_with_a_map_that_reads_the_file(answers: Path, tmp_path: Path) -> None:
    table = answers.with_name("messy.csv")
    table.write_bytes("질문 번호;봇 답변;문맥1;문맥 2;CTX-3\nq1;도시 1;가|나;;다\nq2;도시 2;;라;\n".encode("cp949"))
    err = io.StringIO()
    with pytest.raises(CommandError, match=r"^1 problem"):
        call_command("import_answers", str(table), "--questions", "capitals", "--system", "s", stderr=err)
    assert "질문 번호, 봇 답변, 문맥1, 문맥 2, CTX-3" in err.getvalue()
    proposal = tmp_path / "map.json"
    proposal.write_text(err.getvalue().splitlines()[-1])
    import_file(table, "--map", str(proposal))
    stored = AnswerSet.objects.get().answers.order_by("question_id")
    assert [answer.text for answer in stored] == ["도시 1", "도시 2"]
    passages = [[context.text for context in answer.contexts.order_by("position")] for answer in stored]
    assert passages == [["가|나", "다"], ["라"]]
