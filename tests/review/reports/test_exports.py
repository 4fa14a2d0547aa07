"""Reports as files, and output of the commands."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils.translation import override as override_language
from openpyxl import load_workbook

from evaluation.messages.explanations import explain_reason
from evaluation.models import Run
from tests.factories import make_answer_set, make_project, make_question_set, question_spec
from tests.review.builders import (
    FAILED,
    NOT_APPLICABLE,
    answer_rows,
    answers_to,
    decide,
    imported_rating,
    metric,
    run_over,
    score_all,
)

pytestmark = pytest.mark.django_db
NA = NOT_APPLICABLE


@pytest.fixture
def run() -> Run:
    """Four answers, one negative; correctness of the first is overridden, of the second rated."""
    scored_run = run_over(answers_to(["a", "a", "a", "negative"]))
    score_all(
        scored_run,
        {
            "keyword_hit": [1, 1, 0, NA],
            "keyword_coverage": [1, 0.5, 0, NA],
            "negative_detection": [NA, NA, NA, 1],
            "correctness": [5, 4, 1, 3],
            "faithfulness": [5, 5, 5, 5],
            "completeness": [4, 4, 2, 4],
            "latency": [1.5] * 4,
        },
    )
    decide(answer_rows(scored_run)[0], metric("correctness"), 2)
    imported_rating(answer_rows(scored_run)[1], metric("correctness"), "e1", 3)
    return scored_run


def run_command(command: str, *args: Any, **options: Any) -> str:
    output = io.StringIO()
    call_command(command, *args, stdout=output, **options)
    return output.getvalue()


def export_report(run: Run, path: Path) -> bytes:
    run_command("export_report", run.pk, output=[path])
    return path.read_bytes()


def test_json_report_has_the_documented_sections(run: Run, tmp_path: Path) -> None:
    report = json.loads(export_report(run, tmp_path / "report.json"))
    assert set(report) >= {"evaluation", "overall", "coverage", "agreement", "gate", "provenance"}
    evaluation = report["evaluation"]
    # hit 2/3, coverage 1.5/3, negative 1, correctness 13/4, faithfulness 5, completeness 14/4
    expected = 0.15 * 2 / 3 + 0.10 * 0.5 + 0.15 + 0.25 * 3.25 / 5 + 0.20 + 0.15 * 3.5 / 5
    assert evaluation["overall_score"] == pytest.approx(expected)
    assert evaluation["llm_judge"] == {"avg_correctness": 3.25, "avg_faithfulness": 5.0, "avg_completeness": 3.5}
    assert report["overall"]["judge_only"]["target"] == "questions_like_these"
    # 5 -> 2 and 4 -> 3: four points of 4 x 5
    assert report["overall"]["reviewed"]["value"] == pytest.approx(expected - 0.25 * 4 / 20)
    assert report["overall"]["corrected"]["withheld"] == "no_probability"  # the rating came without a sample
    assert report["coverage"]["keyword_hit"] == {"scored": 3, "failed": 0, "not_applicable": 1, "pending": 0}
    assert report["gate"] is None
    assert report["provenance"]["judges"][0]["primary"] is True
    assert report["provenance"]["cost"]["at_least"] is False
    assert report["agreement"]["judges"]["judge@1"]["correctness"]["n"] == 1
    first, *other_details = evaluation["details"]
    assert [detail["answer_id"] for detail in other_details] == [row.pk for row in answer_rows(run)[1:]]
    assert first["metrics"]["correctness"] == {"value": 2.0, "source": "override", "status": "scored", "judge": 5.0}
    assert first["response"] == answer_rows(run)[0].text


def test_csv_report_has_one_row_per_answer_and_no_formula(tmp_path: Path) -> None:
    project = make_project()
    questions = make_question_set(project, [question_spec(1, text="=2+2"), question_spec(2)])
    scored_run = run_over(make_answer_set(questions, texts=['=HYPERLINK("http://x")', "서울"]))
    score_all(scored_run, {"correctness": [5, FAILED]})
    data = export_report(scored_run, tmp_path / "report.csv")
    assert data.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert [row["question_id"] for row in rows] == ["q1", "q2"]
    assert rows[0]["question"] == "'=2+2"
    assert rows[0]["answer"] == '\'=HYPERLINK("http://x")'
    assert (rows[0]["correctness"], rows[0]["correctness_source"]) == ("5.0", "judge")
    assert (rows[1]["correctness"], rows[1]["correctness_reason"]) == ("", "timeout")
    assert rows[1]["answer"] == "서울"


def test_file_extension_chooses_the_format_and_an_unknown_one_is_refused(run: Run, tmp_path: Path) -> None:
    lines = export_report(run, tmp_path / "report.jsonl").decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["q1", "q2", "q3", "q4"]
    export_report(run, tmp_path / "report.xlsx")
    book = load_workbook(tmp_path / "report.xlsx", read_only=True)
    assert book.sheetnames == ["answers", "figures"]
    with pytest.raises(CommandError) as error:
        export_report(run, tmp_path / "report.pages")
    assert error.value.returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.jsonl", "report.xlsx"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_workbook_explains_missing_values_in_words(run: Run, language: str, tmp_path: Path) -> None:
    with override_language(language):
        export_report(run, tmp_path / "report.xlsx")
        reasons = {code: explain_reason(code) for code in ("no_keywords", "not_reviewed", "no_probability")}
    answers, figures = (list(sheet.iter_rows(values_only=True)) for sheet in load_workbook(tmp_path / "report.xlsx"))
    at, withheld = answers[0].index("keyword_hit_reason"), figures[0].index("withheld")
    assert [row[at] for row in answers[1:]] == [None, None, None, reasons["no_keywords"]]
    assert {row[withheld] for row in figures[1:]} == {None, reasons["not_reviewed"], reasons["no_probability"]}
    assert not set(reasons) & set(reasons.values())
    csv_rows = export_report(run, tmp_path / "report.csv").decode("utf-8-sig")
    assert [row["keyword_hit_reason"] for row in csv.DictReader(io.StringIO(csv_rows))] == ["", "", "", "no_keywords"]


def test_a_file_that_cannot_be_written_is_a_clear_error(run: Run, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        export_report(run, tmp_path / "missing" / "report.json")


def test_results_print_the_score_estimates(run: Run) -> None:
    text = run_command("results", run.pk)
    # judge-only as computed in the test of the JSON report: 0.7675
    assert "judge only\t0.767\t" in text or "judge only\t0.768\t" in text
    assert "questions like these, without judge error" in text
    assert "keyword_hit_rate\t0.667\t" in text
    summary = json.loads(run_command("results", run.pk, format="json"))
    assert "details" not in summary["evaluation"]


def test_results_of_an_incomplete_run_exit_with_100() -> None:
    scored_run = run_over(answers_to(["a"] * 3), state=Run.State.INCOMPLETE)
    score_all(scored_run, {"keyword_hit": [1, 1, FAILED]})
    with pytest.raises(SystemExit) as error:
        run_command("results", scored_run.pk)
    assert error.value.code == 100


def test_unknown_run_is_a_usage_error() -> None:
    for command in ("results", "agreement", "compare"):
        with pytest.raises(CommandError) as error:
            run_command(command, 999_999)
        assert error.value.returncode == 2


def test_agreement_prints_a_line_per_judge_and_metric(run: Run) -> None:
    text = run_command("agreement", run.pk, resamples=0)
    assert "judge@1\tcorrectness\t1\t0.000000" in text
    agreement = json.loads(run_command("agreement", run.pk, resamples=0, format="json"))
    assert agreement["judges"]["judge@1"]["correctness"]["bias"] == 1.0


def test_agreement_reports_missing_ratings() -> None:
    assert "no blind expert ratings yet" in run_command("agreement", run_over(answers_to(["a"])).pk)


def test_compare_shows_runs_side_by_side_and_names_differences(run: Run) -> None:
    other_run = run_over(run.answer_set, judge=None, judged=False)
    score_all(
        other_run, {"keyword_hit": [1, 1, 1, NA], "keyword_coverage": [1, 1, 1, NA], "negative_detection": [NA] * 4}
    )
    text = run_command("compare", run.pk, other_run.pk)
    assert f"run {run.pk}\trun {other_run.pk}" in text
    assert "keyword_hit\t0.667\t1.000" in text
    comparison = json.loads(run_command("compare", run.pk, other_run.pk, format="json"))
    assert set(comparison["differs"]) == {"judge", "rubric", "method", "metrics"}
    assert [row["run"]["id"] for row in comparison["runs"]] == [run.pk, other_run.pk]
    named_output = run_command("compare", questions=run.answer_set.question_set.name, project=run.project.name)
    assert f"run {run.pk}\trun {other_run.pk}" in named_output
