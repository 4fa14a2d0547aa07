"""Import of ratings made elsewhere: all or nothing, idempotent, and superseding."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.core.errors import DomainError, InvalidFile
from evaluation.models import AuditEvent, Finding, MetricDefinition, Run, Score
from evaluation.scoring.scores import current_scores
from review.agreement.run_agreement import compute_agreement
from review.evidence.effective import effective_values
from review.models import Rating
from review.ratings.import_files import ImportedRatings, import_ratings
from tests.factories import make_answer, make_user
from tests.review.builders import answer_rows, answers_to, metric, run_over, score_all

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def run() -> Run:
    scored_run = run_over(answers_to(["a", "a", "b"]))
    score_all(scored_run, {"correctness": [5, 4, 3]})
    return scored_run


def row(question: str = "q1", value: Any = 4, **fields: Any) -> dict[str, Any]:
    return {
        "question_id": question,
        "metric": "correctness",
        "value": value,
        "rater": "human",
        "author": "e1",
    } | fields


def import_rows(run: Run, *rows: dict[str, Any], **options: Any) -> ImportedRatings:
    data = "".join(json.dumps(record) + "\n" for record in rows).encode()
    return import_ratings(run, data, "ratings.jsonl", **options)


def test_human_rows_become_blind_ratings_of_their_author(run: Run) -> None:
    imported = import_rows(
        run,
        row(value=4, reason="fine", probability=0.5, created="2026-01-31"),
        row("q2", None, reason="outside my field"),
        row("q3", 2, phase="final"),
        by=make_user(),
        sampling="uniform",
    )
    assert (imported.human, imported.judge, imported.failed, imported.authors) == (3, 0, 0, ("e1",))
    first, second, third = Rating.objects.order_by("id")
    assert (first.value, first.author, first.source, first.phase, first.blind) == (4, "e1", "import", "initial", True)
    assert (first.comment, first.probability, first.sampling) == ("fine", 0.5, "uniform")
    assert first.created_at.date().isoformat() in {"2026-01-30", "2026-01-31"}  # midnight of the site's time zone
    assert (second.cannot_judge, second.reason_code, second.comment) == (True, "cannot_judge", "outside my field")
    assert (third.phase, third.blind) == ("final", False)
    assert AuditEvent.objects.filter(verb="ratings.imported", object_id=str(run.pk)).count() == 1


def test_judge_rows_become_scores_and_off_scale_rows_fail(run: Run) -> None:
    parts = [{"kind": "claim", "text": "Seoul is the capital.", "label": "Entailment"}]
    imported = import_rows(
        run,
        row(value=5, rater="judge", author="gpt-4@2024", parts=parts),
        row("q2", 7, rater="judge", author="gpt-4@2024"),
        row("q3", None, rater="judge", author="gpt-4@2024", reason="the reply broke off"),
    )
    assert (imported.human, imported.judge, imported.failed) == (0, 3, 2)
    assert {remark.code for remark in imported.remarks} == {"judge_off_scale", "ratings_without_value"}
    scores = {score.answer.question.external_id: score for score in Score.objects.filter(author="gpt-4@2024")}
    assert scores["q1"].value == 5
    assert (scores["q2"].status, scores["q2"].reason) == ("failed", "scale: 7")
    assert (scores["q3"].status, scores["q3"].reason) == ("failed", "reported: the reply broke off")
    assert Finding.objects.get(score=scores["q1"]).verdict == "supported"
    # the run's own judge stays the one that counts
    assert effective_values(run).values[metric("correctness").pk][answer_rows(run)[0].pk].value == 5


def test_repeated_import_changes_nothing_and_changed_rows_supersede(run: Run) -> None:
    human, judge = row(value=4), row(value=4, rater="judge", author="gpt-4")
    assert import_rows(run, human, judge).unchanged == 0
    repeated = import_rows(run, human, judge)
    assert (repeated.human, repeated.judge, repeated.unchanged) == (0, 0, 2)

    changed_import = import_rows(run, row(value=2), row(value=2, rater="judge", author="gpt-4"))
    assert (changed_import.human, changed_import.judge) == (1, 1)
    agreements = {imported_judge.author: imported_judge.agreement for imported_judge in compute_agreement(run).judges}
    assert agreements["judge@1"].statistics["bias"].value == 3.0  # 5 - 2: the newer rating counts
    assert agreements["gpt-4"].statistics["bias"].value == 0.0
    assert [score.value for score in current_scores(Score.objects.filter(author="gpt-4"))] == [2]

    import_rows(run, human, judge)  # and back to the first
    agreements = {imported_judge.author: imported_judge.agreement for imported_judge in compute_agreement(run).judges}
    assert agreements["judge@1"].statistics["bias"].value == 1.0
    assert Rating.objects.count() == 3


def test_later_sampling_information_is_a_change(run: Run) -> None:
    rows = [row("q1"), row("q2")]
    import_rows(run, *rows)
    assert compute_agreement(run).judges[0].sampling == "unknown"
    assert import_rows(run, *rows, sampling="all").human == 2
    assert compute_agreement(run).judges[0].sampling == "equal"


def test_unknown_metrics_are_defined_once_and_another_scale_is_a_new_version(run: Run) -> None:
    with pytest.raises(InvalidFile) as error:
        import_rows(run, row(metric="tone", value=1))
    assert [problem.code for problem in error.value.problems] == ["metric_unknown"]

    assert import_rows(run, row(metric="tone", value=1), defines=["tone=bool"]).defined == ("tone",)
    assert import_rows(run, row("q2", metric="tone", value=True)).defined == ()
    assert import_rows(run, row(metric="tone", value="warm"), defines=["tone=class:warm|cold"]).defined == ("tone",)
    versions = MetricDefinition.objects.filter(name="tone").order_by("version")
    assert [(m.version, m.scale, m.review_form) for m in versions] == [
        (1, "yes_no", "yes_no"),
        (2, "class warm|cold", "class"),
    ]
    assert list(Rating.objects.order_by("id").values_list("metric__version", flat=True)) == [1, 1, 2]


@pytest.mark.parametrize(
    ("defines", "code"),
    [(["correctness=bool"], "metric_known"), (["tone"], "bad_definition"), (["tone=5..1"], "bad_definition")],
)
def test_contradicting_or_empty_definitions_are_refused(run: Run, defines: list[str], code: str) -> None:
    with pytest.raises(DomainError) as error:
        import_rows(run, row(), defines=defines)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("bad_row", "code"),
    [
        (row("q9"), "question_unanswered"),
        (row("q1", sample=3), "sample_unknown"),
        (row("q1", 9), "off_scale"),
        (row("q1", None, parts=[{"kind": "claim", "text": "x", "label": "supported"}]), "parts_without_value"),
        (
            {
                "pair_id": "p",
                "question": "Question 1?",
                "answer_a": "a",
                "answer_b": "b",
                "value": 1,
                "rater": "human",
                "author": "e1",
            },
            "pairs_not_here",
        ),
    ],
    ids=["question", "sample", "scale", "parts", "pairs"],
)
def test_bad_row_refuses_the_whole_file_with_its_line(run: Run, bad_row: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidFile) as error:
        import_rows(run, row("q2"), bad_row, defines=["tone=bool"])
    assert [(problem.code, problem.line, problem.file) for problem in error.value.problems] == [
        (code, 2, "ratings.jsonl")
    ]
    assert not Rating.objects.exists()
    assert not MetricDefinition.objects.filter(name="tone").exists()


def test_a_row_without_a_sample_needs_a_question_with_one_answer(run: Run) -> None:
    assert answer_rows(run)[0].sample == 1
    assert import_rows(run, row("q1")).human == 1
    make_answer(run.answer_set, answer_rows(run)[0].question, "another", sample=2)
    with pytest.raises(InvalidFile) as error:
        import_rows(run, row("q1", 2))
    assert error.value.problems[0].params == {"id": "q1", "samples": "1, 2"}
    import_rows(run, row("q1", 2, sample=2))
    assert Rating.objects.get(value=2).answer.text == "another"


def test_dry_run_reports_and_stores_nothing(run: Run) -> None:
    report = import_rows(run, row(metric="tone", value=0), defines=["tone=bool"], dry_run=True)
    assert (report.human, report.defined) == (1, ("tone",))
    assert not Rating.objects.exists()
    assert not MetricDefinition.objects.filter(name="tone").exists()
    assert not AuditEvent.objects.filter(verb="ratings.imported").exists()
