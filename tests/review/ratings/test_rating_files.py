"""Importing ratings made elsewhere: all or nothing, once, and superseding."""

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
    made = run_over(answers_to(["a", "a", "b"]))
    score_all(made, {"correctness": [5, 4, 3]})
    return made


def row(question: str = "q1", value: Any = 4, **fields: Any) -> dict[str, Any]:
    return {
        "question_id": question,
        "metric": "correctness",
        "value": value,
        "rater": "human",
        "author": "e1",
    } | fields


def bring(run: Run, *rows: dict[str, Any], **options: Any) -> ImportedRatings:
    data = "".join(json.dumps(one) + "\n" for one in rows).encode()
    return import_ratings(run, data, "ratings.jsonl", **options)


def test_human_rows_become_blind_ratings_under_their_label(run: Run) -> None:
    done = bring(
        run,
        row(value=4, reason="fine", probability=0.5, created="2026-01-31"),
        row("q2", None, reason="outside my field"),
        row("q3", 2, phase="final"),
        by=make_user(),
        sampling="uniform",
    )
    assert (done.human, done.judge, done.failed, done.authors) == (3, 0, 0, ("e1",))
    first, second, third = Rating.objects.order_by("id")
    assert (first.value, first.author, first.source, first.phase, first.blind) == (4, "e1", "import", "initial", True)
    assert (first.comment, first.probability, first.sampling) == ("fine", 0.5, "uniform")
    assert first.created_at.date().isoformat() in {"2026-01-30", "2026-01-31"}  # midnight of the site's time zone
    assert (second.cannot_judge, second.reason_code, second.comment) == (True, "cannot_judge", "outside my field")
    assert (third.phase, third.blind) == ("final", False)
    assert AuditEvent.objects.filter(verb="ratings.imported", object_id=str(run.pk)).count() == 1


def test_judge_rows_become_scores_of_that_judge_and_off_scale_ones_are_failed_and_counted(run: Run) -> None:
    parts = [{"kind": "claim", "text": "Seoul is the capital.", "label": "Entailment"}]
    done = bring(
        run,
        row(value=5, rater="judge", author="gpt-4@2024", parts=parts),
        row("q2", 7, rater="judge", author="gpt-4@2024"),
        row("q3", None, rater="judge", author="gpt-4@2024", reason="the reply broke off"),
    )
    assert (done.human, done.judge, done.failed) == (0, 3, 2)
    assert {remark.code for remark in done.remarks} == {"judge_off_scale", "ratings_without_value"}
    scores = {score.answer.question.external_id: score for score in Score.objects.filter(author="gpt-4@2024")}
    assert scores["q1"].value == 5
    assert (scores["q2"].status, scores["q2"].reason) == ("failed", "scale: 7")
    assert (scores["q3"].status, scores["q3"].reason) == ("failed", "reported: the reply broke off")
    assert Finding.objects.get(score=scores["q1"]).verdict == "supported"
    # the run's own judge stays the one that counts
    assert effective_values(run).values[metric("correctness").pk][answer_rows(run)[0].pk].value == 5


def test_importing_the_same_again_changes_nothing_and_a_changed_row_supersedes(run: Run) -> None:
    human, judge = row(value=4), row(value=4, rater="judge", author="gpt-4")
    assert bring(run, human, judge).unchanged == 0
    again = bring(run, human, judge)
    assert (again.human, again.judge, again.unchanged) == (0, 0, 2)

    changed = bring(run, row(value=2), row(value=2, rater="judge", author="gpt-4"))
    assert (changed.human, changed.judge) == (1, 1)
    found = {one.author: one.agreement for one in compute_agreement(run).judges}
    assert found["judge@1"].statistics["bias"].value == 3.0  # 5 - 2: the newer rating counts
    assert found["gpt-4"].statistics["bias"].value == 0.0
    assert [score.value for score in current_scores(Score.objects.filter(author="gpt-4"))] == [2]

    bring(run, human, judge)  # and back to the first
    found = {one.author: one.agreement for one in compute_agreement(run).judges}
    assert found["judge@1"].statistics["bias"].value == 1.0
    assert Rating.objects.count() == 3


def test_saying_how_the_answers_were_sampled_afterwards_is_a_change(run: Run) -> None:
    rows = [row("q1"), row("q2")]
    bring(run, *rows)
    assert compute_agreement(run).judges[0].sampling == "unknown"
    assert bring(run, *rows, sampling="all").human == 2
    assert compute_agreement(run).judges[0].sampling == "equal"


def test_unknown_metrics_are_defined_once_and_another_scale_is_another_version(run: Run) -> None:
    with pytest.raises(InvalidFile) as refused:
        bring(run, row(metric="tone", value=1))
    assert [problem.code for problem in refused.value.problems] == ["metric_unknown"]

    assert bring(run, row(metric="tone", value=1), defines=["tone=bool"]).defined == ("tone",)
    assert bring(run, row("q2", metric="tone", value=True)).defined == ()
    assert bring(run, row(metric="tone", value="warm"), defines=["tone=class:warm|cold"]).defined == ("tone",)
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
def test_definitions_that_contradict_or_say_nothing_are_refused(run: Run, defines: list[str], code: str) -> None:
    with pytest.raises(DomainError) as refused:
        bring(run, row(), defines=defines)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("bad", "code"),
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
def test_one_bad_row_refuses_the_whole_file_with_its_line(run: Run, bad: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        bring(run, row("q2"), bad, defines=["tone=bool"])
    assert [(problem.code, problem.line, problem.file) for problem in refused.value.problems] == [
        (code, 2, "ratings.jsonl")
    ]
    assert not Rating.objects.exists()
    assert not MetricDefinition.objects.filter(name="tone").exists()


def test_a_row_without_a_sample_needs_a_question_with_one_answer(run: Run) -> None:
    assert answer_rows(run)[0].sample == 1
    assert bring(run, row("q1")).human == 1
    make_answer(run.answer_set, answer_rows(run)[0].question, "another", sample=2)
    with pytest.raises(InvalidFile) as refused:
        bring(run, row("q1", 2))
    assert refused.value.problems[0].params == {"id": "q1", "samples": "1, 2"}
    bring(run, row("q1", 2, sample=2))
    assert Rating.objects.get(value=2).answer.text == "another"


def test_a_dry_run_says_what_it_would_do_and_stores_nothing(run: Run) -> None:
    done = bring(run, row(metric="tone", value=0), defines=["tone=bool"], dry_run=True)
    assert (done.human, done.defined) == (1, ("tone",))
    assert not Rating.objects.exists()
    assert not MetricDefinition.objects.filter(name="tone").exists()
    assert not AuditEvent.objects.filter(verb="ratings.imported").exists()
