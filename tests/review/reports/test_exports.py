"""Reports as files, and what the commands print."""

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
    made = run_over(answers_to(["a", "a", "a", "negative"]))
    score_all(
        made,
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
    decide(answer_rows(made)[0], metric("correctness"), 2)
    imported_rating(answer_rows(made)[1], metric("correctness"), "e1", 3)
    return made


def printed(command: str, *args: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(command, *args, stdout=out, **options)
    return out.getvalue()


def exported(run: Run, path: Path) -> bytes:
    printed("export_report", run.pk, output=[path])
    return path.read_bytes()


def test_the_json_report_has_the_sections_of_the_contract(run: Run, tmp_path: Path) -> None:
    report = json.loads(exported(run, tmp_path / "report.json"))
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
    first, *others = evaluation["details"]
    assert [one["answer_id"] for one in others] == [row.pk for row in answer_rows(run)[1:]]
    assert first["metrics"]["correctness"] == {"value": 2.0, "source": "override", "status": "scored", "judge": 5.0}
    assert first["response"] == answer_rows(run)[0].text


def test_the_csv_report_has_one_row_per_answer_and_runs_no_formula(tmp_path: Path) -> None:
    project = make_project()
    questions = make_question_set(project, [question_spec(1, text="=2+2"), question_spec(2)])
    made = run_over(make_answer_set(questions, texts=['=HYPERLINK("http://x")', "서울"]))
    score_all(made, {"correctness": [5, FAILED]})
    data = exported(made, tmp_path / "report.csv")
    assert data.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert [row["question_id"] for row in rows] == ["q1", "q2"]
    assert rows[0]["question"] == "'=2+2"
    assert rows[0]["answer"] == '\'=HYPERLINK("http://x")'
    assert (rows[0]["correctness"], rows[0]["correctness_source"]) == ("5.0", "judge")
    assert (rows[1]["correctness"], rows[1]["correctness_reason"]) == ("", "timeout")
    assert rows[1]["answer"] == "서울"


def test_the_ending_chooses_the_format_and_an_unknown_one_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    lines = exported(run, tmp_path / "report.jsonl").decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["q1", "q2", "q3", "q4"]
    exported(run, tmp_path / "report.xlsx")
    book = load_workbook(tmp_path / "report.xlsx", read_only=True)
    assert book.sheetnames == ["answers", "figures"]
    with pytest.raises(CommandError) as refused:
        exported(run, tmp_path / "report.pages")
    assert refused.value.returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.jsonl", "report.xlsx"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_workbook_says_in_words_why_there_is_no_value_or_figure(run: Run, language: str, tmp_path: Path) -> None:
    with override_language(language):
        exported(run, tmp_path / "report.xlsx")
        said = {code: explain_reason(code) for code in ("no_keywords", "not_reviewed", "no_probability")}
    answers, figures = (list(sheet.iter_rows(values_only=True)) for sheet in load_workbook(tmp_path / "report.xlsx"))
    at, withheld = answers[0].index("keyword_hit_reason"), figures[0].index("withheld")
    assert [row[at] for row in answers[1:]] == [None, None, None, said["no_keywords"]]
    assert {row[withheld] for row in figures[1:]} == {None, said["not_reviewed"], said["no_probability"]}
    assert not set(said) & set(said.values())
    csv_rows = exported(run, tmp_path / "report.csv").decode("utf-8-sig")
    assert [row["keyword_hit_reason"] for row in csv.DictReader(io.StringIO(csv_rows))] == ["", "", "", "no_keywords"]


def test_a_file_that_cannot_be_written_is_a_clear_error(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file or directory"):
        exported(run, tmp_path / "missing" / "report.json")


def test_results_print_the_three_scores_with_what_they_mean(run: Run) -> None:
    text = printed("results", run.pk)
    # judge-only as computed in the test of the JSON report: 0.7675
    assert "judge only\t0.767\t" in text or "judge only\t0.768\t" in text
    assert "questions like these, without judge error" in text
    assert "keyword_hit_rate\t0.667\t" in text
    summary = json.loads(printed("results", run.pk, format="json"))
    assert "details" not in summary["evaluation"]


def test_results_of_a_run_that_is_not_complete_end_with_100() -> None:
    made = run_over(answers_to(["a"] * 3), state=Run.State.INCOMPLETE)
    score_all(made, {"keyword_hit": [1, 1, FAILED]})
    with pytest.raises(SystemExit) as ended:
        printed("results", made.pk)
    assert ended.value.code == 100


def test_a_run_that_is_not_there_is_wrong_usage() -> None:
    for command in ("results", "agreement", "compare"):
        with pytest.raises(CommandError) as refused:
            printed(command, 999_999)
        assert refused.value.returncode == 2


def test_agreement_prints_a_line_per_judge_and_metric(run: Run) -> None:
    text = printed("agreement", run.pk, resamples=0)
    assert "judge@1\tcorrectness\t1\t0.000000" in text
    found = json.loads(printed("agreement", run.pk, resamples=0, format="json"))
    assert found["judges"]["judge@1"]["correctness"]["bias"] == 1.0


def test_agreement_without_ratings_says_so() -> None:
    assert "no blind expert ratings yet" in printed("agreement", run_over(answers_to(["a"])).pk)


def test_compare_puts_runs_side_by_side_and_names_what_differs(run: Run) -> None:
    other = run_over(run.answer_set, judge=None, judged=False)
    score_all(other, {"keyword_hit": [1, 1, 1, NA], "keyword_coverage": [1, 1, 1, NA], "negative_detection": [NA] * 4})
    text = printed("compare", run.pk, other.pk)
    assert f"run {run.pk}\trun {other.pk}" in text
    assert "keyword_hit\t0.667\t1.000" in text
    found = json.loads(printed("compare", run.pk, other.pk, format="json"))
    assert set(found["differs"]) == {"judge", "rubric", "method", "metrics"}
    assert [one["run"]["id"] for one in found["runs"]] == [run.pk, other.pk]
    named = printed("compare", questions=run.answer_set.question_set.name, project=run.project.name)
    assert f"run {run.pk}\trun {other.pk}" in named
