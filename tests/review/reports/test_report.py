"""Run report: overall scores, coverage, and the section of the GraphRAG source."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from evaluation.core.roles import Role
from evaluation.extensions import is_installed
from evaluation.models import Answer, AuditEvent, Run
from evaluation.profiles.arithmetic import FigureLabel
from review.comparisons.gates import run_gate
from review.reports.as_json import summary_json
from review.reports.exports import export
from review.reports.gate import GateRequest
from review.reports.lines import MetricLine
from review.reports.report import Report
from review.statistics.paired_tests.gate import GateVerdict
from tests.factories import make_profile, make_user
from tests.review.builders import (
    FAILED,
    NOT_APPLICABLE,
    answer_rows,
    answers_to,
    assignment_of,
    decide,
    draw_into,
    imported_rating,
    make_report,
    metric,
    queue_for,
    rate,
    run_over,
    score_all,
)
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db
NA = NOT_APPLICABLE


@pytest.fixture
def example() -> Run:
    """The worked example of the GraphRAG profile: 50 questions with keywords and 10 negative ones.

    hit 39/50 = 0.78; coverage 31 x 1 + 19 x 0 = 0.62; negative 8/10 = 0.80; correctness (48 x 4 + 12 x 3)/60 = 3.8;
    faithfulness (48 x 4 + 12 x 5)/60 = 4.2; completeness (30 x 3 + 30 x 4)/60 = 3.5."""
    scored_run = run_over(answers_to(["single_hop"] * 50 + ["negative"] * 10))
    score_all(
        scored_run,
        {
            "keyword_hit": [1] * 39 + [0] * 11 + [NA] * 10,
            "keyword_coverage": [1] * 31 + [0] * 19 + [NA] * 10,
            "negative_detection": [NA] * 50 + [1] * 8 + [0] * 2,
            "correctness": [4] * 48 + [3] * 12,
            "faithfulness": [4] * 48 + [5] * 12,
            "completeness": [3] * 30 + [4] * 30,
        },
    )
    return scored_run


def line(report: Report, name: str) -> MetricLine:
    return next(metric_line for metric_line in report.metrics if metric_line.name == name)


def test_worked_example_scores_0_762(example: Run) -> None:
    report = make_report(example)
    section = report.evaluation
    assert section["keyword_hit_rate"] == pytest.approx(0.78)
    assert section["keyword_coverage"] == pytest.approx(0.62)
    assert section["negative_detection_rate"] == pytest.approx(0.80)
    assert section["llm_judge"] == pytest.approx(
        {"avg_correctness": 3.8, "avg_faithfulness": 4.2, "avg_completeness": 3.5}
    )
    # 0.78 x .15 + 0.62 x .10 + 0.80 x .15 + 3.8/5 x .25 + 4.2/5 x .20 + 3.5/5 x .15
    # = 0.117 + 0.062 + 0.12 + 0.19 + 0.168 + 0.105
    assert section["overall_score"] == pytest.approx(0.762)
    assert report.overall.judge_only.value == pytest.approx(0.762)
    assert report.overall.label is FigureLabel.OVERALL_SCORE
    assert section["by_category"]["negative"]["overall_score"] is None  # it has no keyword questions
    assert section["by_category"]["negative"]["negative_detection_rate"] == pytest.approx(0.80)
    assert section["by_category"]["single_hop"]["count"] == 50


def test_unreviewed_run_withholds_the_other_scores(example: Run) -> None:
    overall = make_report(example).overall
    assert overall.reviewed.withheld == "not_reviewed"
    assert overall.corrected.withheld == "not_reviewed"
    assert overall.reviewed_answers == 0


def test_override_changes_the_reviewed_score_only(example: Run) -> None:
    decide(answer_rows(example)[0], metric("correctness"), 1)
    report = make_report(example)
    # one correctness of 60 falls from 4 to 1: 3/60/5 x 0.25 = 0.0025
    assert report.overall.reviewed.value == pytest.approx(0.762 - 0.0025)
    assert report.overall.judge_only.value == pytest.approx(0.762)
    assert report.overall.overrides == 1
    assert line(report, "correctness").overridden == 1
    assert line(report, "correctness").reviewed.value == pytest.approx(3.75)


def test_interval_is_the_t_interval_when_one_part_varies() -> None:
    """Only hits vary, 3 of 4 questions: the overall is constant + .15 x mean hit.

    x = 1, 1, 1, 0: s = 0.5, standard error .15 x 0.5/sqrt(4) = 0.0375, t(3) = 3.182446 -> half width 0.119342.
    """
    scored_run = run_over(answers_to(["a", "b", "c", "d"]))
    score_all(
        scored_run,
        {"keyword_hit": [1, 1, 1, 0], "keyword_coverage": [1] * 4, "negative_detection": [1] * 4}
        | dict.fromkeys(("correctness", "faithfulness", "completeness"), [3] * 4),
    )
    figure = make_report(scored_run).overall.judge_only
    # .15 x .75 + .10 + .15 + .60 x 3/5 = 0.7225
    assert figure.value == pytest.approx(0.7225)
    assert figure.low == pytest.approx(0.7225 - 0.119342, abs=1e-6)
    assert figure.high == pytest.approx(0.7225 + 0.119342, abs=1e-6)
    assert figure.target == "questions_like_these"


def test_questions_of_one_group_are_one_cluster() -> None:
    """Two groups of two: means 1 and 0.5, so the cluster variance of the mean hit (0.75) is
    2/1 x ((0.25 x 2/4)^2 + (-0.25 x 2/4)^2) = 0.0625, half width 12.7062 x 0.25 > 1: cut at the scale."""
    scored_run = run_over(answers_to(["a"] * 4, groups=["g", "g", "h", "h"]))
    score_all(scored_run, {"keyword_hit": [1, 1, 1, 0]})
    figure = line(make_report(scored_run), "keyword_hit").judge_only
    assert (figure.value, figure.low, figure.high) == (0.75, 0.0, 1.0)


@pytest.mark.parametrize(
    ("values", "reason"), [([1, 1, 1], "no_variation"), ([1, 0, NA], "")], ids=["constant", "varying"]
)
def test_without_variation_there_is_no_interval(values: list[float | str], reason: str) -> None:
    scored_run = run_over(answers_to(["a"] * 3))
    score_all(scored_run, {"keyword_hit": values})
    figure = line(make_report(scored_run), "keyword_hit").judge_only
    assert figure.no_interval == reason
    assert (figure.low is None) == bool(reason)


def test_run_without_a_judge_has_a_rules_only_figure() -> None:
    scored_run = run_over(answers_to(["a", "b", "negative"]), judged=False)
    score_all(
        scored_run,
        {"keyword_hit": [1, 0, NA], "keyword_coverage": [0.5, 0, NA], "negative_detection": [NA, NA, 1]},
    )
    report = make_report(scored_run)
    assert report.overall.label is FigureLabel.RULES_ONLY
    assert report.overall.weight == pytest.approx(0.40)
    assert report.overall.part_only is not None
    # (.15 x .5 + .10 x .25 + .15 x 1) / .40 = 0.25 / 0.4
    assert report.overall.part_only.value == pytest.approx(0.625)
    assert report.overall.judge_only.withheld == "rules_only"
    assert report.evaluation["overall_score"] is None
    assert report.evaluation["llm_judge"] is None
    assert report.evaluation["rules_only"] == {"value": pytest.approx(0.625), "weight": 0.4}


def test_more_than_ten_percent_failures_give_bounds_without_a_headline() -> None:
    scored_run = run_over(answers_to(["a"] * 5 + ["negative"]), state=Run.State.INCOMPLETE)
    score_all(
        scored_run,
        {
            "keyword_hit": [1] * 5 + [NA],
            "keyword_coverage": [1] * 5 + [NA],
            "negative_detection": [NA] * 5 + [1],
            "correctness": [5, 5, 5, 5, 5, FAILED],
            "faithfulness": [5] * 6,
            "completeness": [5] * 6,
        },
    )
    report = make_report(scored_run)
    figure = report.overall.judge_only
    assert figure.withheld == "failed_share: correctness"
    # the failed correctness at 1 or at 5: .25 x (5 x 5 + 1)/6/5 = 0.216667 instead of 0.25
    assert figure.worst == pytest.approx(1 - 0.25 + 0.25 * 26 / 30)
    assert figure.best == pytest.approx(1.0)
    assert report.evaluation["overall_score"] is None
    assert line(report, "correctness").coverage.failed == 1
    assert line(report, "correctness").judge_only.worst == pytest.approx(26 / 6)


def test_rating_of_a_failed_answer_enters_the_reviewed_score() -> None:
    scored_run = run_over(answers_to(["a"] * 5 + ["negative"]), state=Run.State.INCOMPLETE)
    score_all(
        scored_run,
        {
            "keyword_hit": [1] * 5 + [NA],
            "keyword_coverage": [1] * 5 + [NA],
            "negative_detection": [NA] * 5 + [1],
            "correctness": [5, 5, 5, 5, 5, FAILED],
            "faithfulness": [5] * 6,
            "completeness": [5] * 6,
        },
    )
    imported_rating(answer_rows(scored_run)[5], metric("correctness"), "e1", 2)
    overall = make_report(scored_run).overall
    assert overall.judge_only.withheld == "failed_share: correctness"
    assert overall.reviewed.value == pytest.approx(0.75 + 0.25 * 27 / 30)


def test_unfinished_run_has_no_headline_and_counts_pending_answers() -> None:
    scored_run = run_over(answers_to(["a"] * 4), state=Run.State.RUNNING)
    score_all(scored_run, {"keyword_hit": [1, 0, None, None]})
    report = make_report(scored_run)
    assert report.overall.judge_only.withheld == "not_finished"
    assert report.overall.corrected.withheld == "not_finished"
    coverage = line(report, "keyword_hit").coverage
    assert (coverage.scored, coverage.pending) == (2, 2)
    assert not report.header.complete


def test_response_times_have_mean_median_and_95th_percentile() -> None:
    scored_run = run_over(answers_to(["a"] * 4 + ["b"]))
    score_all(scored_run, {"latency": [1.0, 2.0, 3.0, 4.0, 10.0]})
    latency = line(make_report(scored_run), "latency").latency
    assert latency is not None
    # linear interpolation: p95 lies at position 0.95 x 4 = 3.8, 4 + 0.8 x (10 - 4) = 8.8
    assert (latency.n, latency.mean, latency.p50, latency.p95) == (5, 4.0, 3.0, pytest.approx(8.8))
    assert make_report(scored_run).evaluation["avg_latency_seconds"] == 1.5  # of the answers, which all took so long


def test_worst_answers_and_largest_disagreements_come_first(example: Run) -> None:
    answers = answer_rows(example)
    imported_rating(answers[3], metric("correctness"), "e1", 1)  # judge 4, distance 3/4
    imported_rating(answers[4], metric("correctness"), "e1", 3)  # judge 4, distance 1/4
    report = make_report(example)
    assert [(d.answer.question_id, d.distance) for d in report.disagreements] == [("q4", 0.75), ("q5", 0.25)]
    # q49, q50: no hit, correctness 3, faithfulness 5, completeness 4: (.25 x .6 + .20 x 1 + .15 x .8) / .85;
    # q40 to q48 have correctness 4 and faithfulness 4: (.20 + .16 + .12) / .85
    assert [w.answer.question_id for w in report.worst[:3]] == ["q49", "q50", "q40"]
    assert report.worst[0].score == pytest.approx(0.47 / 0.85)


def test_unrated_judged_parts_make_the_score_partly_corrected(example: Run) -> None:
    """Correctness (.25) is rated 3 everywhere. Faithfulness (.20, mean 4.2 of 5) and completeness (.15, mean 3.5) could
    be 1 to 5: down .20 x .64 + .15 x .50 = .203, up .20 x .16 + .15 x .30 = .077."""
    for answer in answer_rows(example):
        imported_rating(answer, metric("correctness"), "e1", 3)
    corrected = make_report(example).overall.corrected_this_run
    assert corrected.value == pytest.approx(0.722)
    assert (corrected.low, corrected.high) == pytest.approx((0.722 - 0.203, 0.722 + 0.077))
    assert dict(corrected.partly_corrected) == pytest.approx({"faithfulness": 0.20, "completeness": 0.15})


def test_lead_may_assume_the_measured_bias_for_unrated_parts(example: Run) -> None:
    """Correctness is judged 3.8 and rated 3 everywhere: off by .8 of the 4 levels between 1 and 5, or .2 of the scale.
    In shares of 5 that is .16 for faithfulness and completeness, down and up .20 x .16 + .15 x .16 = .056."""
    for answer in answer_rows(example):
        imported_rating(answer, metric("correctness"), "e1", 3)
    lead = make_user("lead", example.project, username="ada")
    client = Client()
    client.force_login(lead)
    address = reverse("run-assume", args=[example.pk])
    assert client.post(address, {"accepted": "maybe"}).status_code == 400
    for _ in range(2):
        client.post(address, {"accepted": "1"})
    assert AuditEvent.objects.get(verb="unrated_like_rated_accepted").actor == lead  # once, however often it is said
    corrected = make_report(example).overall.corrected_this_run
    assert (corrected.low, corrected.high) == pytest.approx((0.722 - 0.056, 0.722 + 0.056))
    assert set(corrected.partly_corrected) == {"faithfulness", "completeness"}
    corrected_json = Caller(lead).get(f"runs/{example.pk}/correction/").json()["overall"]["corrected_this_run"]
    assert (corrected_json["assumption"]["by"], corrected_json["assumption"]["bias"]) == ("ada", pytest.approx(0.2))
    output = StringIO()
    call_command("corrected_scores", str(example.pk), stdout=output)
    report = b"".join(export(example, "html").chunks).decode()
    for text in (output.getvalue(), report, client.get(reverse("run", args=[example.pk])).content.decode()):
        assert re.search(r"ada accepted that the judge is off there by at most 20% of the scale", text)
    gate = run_gate(example, GateRequest(fail_under=0.1))
    assert gate is not None
    assert (gate.verdict, gate.checks[0].reason) == (GateVerdict.UNDECIDED, "partly_corrected")
    assert Caller(lead).post(f"runs/{example.pk}/assumption/", {"accepted": False}).status_code == 204
    assert make_report(example).overall.corrected_this_run.low == pytest.approx(0.722 - 0.203)


def test_complete_review_is_a_census_with_an_exact_corrected_score(example: Run) -> None:
    for at, answer in enumerate(answer_rows(example)):
        imported_rating(answer, metric("correctness"), "e1", 3)
        imported_rating(answer, metric("faithfulness"), "e1", 4 if at < 48 else 5)
        imported_rating(answer, metric("completeness"), "e1", 3 if at < 30 else 4)
    overall = make_report(example).overall
    # correctness 3 instead of 3.8: 0.762 - .8/5 x .25 = 0.722, the rules as they came
    assert overall.corrected_this_run.value == pytest.approx(0.722)
    assert not overall.corrected_this_run.partly_corrected
    assert (overall.corrected_this_run.low, overall.corrected_this_run.high) == pytest.approx((0.722, 0.722))
    assert overall.corrected_this_run.target == "this_run"
    assert set(overall.corrected_this_run.extra["as_it_came"]) == {
        "keyword_hit",
        "keyword_coverage",
        "negative_detection",
    }


def test_uniform_sample_corrects_the_judge_and_a_small_one_is_withheld(example: Run) -> None:
    anna = make_user()
    row = metric("correctness")
    queue = queue_for(example, [row], [anna])
    draw_into(queue, example, [("all", 0.5, n % 2 == 0) for n in range(60)])
    answers = answer_rows(example)

    def rate_answer(answer: Answer, value: float) -> None:
        rate(assignment_of(queue, answer, anna, example), row, value)

    for n in range(0, 20, 2):
        rate_answer(answers[n], 3)
    withheld = make_report(example).overall.corrected
    assert withheld.withheld == "components_withheld"
    assert withheld.extra["missing"]["components"]["correctness"] == {"reason": "too_few_labels", "labels": 10}

    for n in range(20, 60, 2):
        rate_answer(answers[n], 3 if n < 48 else 2)  # always one below the judge
    report = make_report(example)
    corrected = line(report, "correctness").corrected
    assert corrected.value == pytest.approx(2.8)  # 3.8 - 1 everywhere
    assert corrected.extra["labels"] == 30
    assert report.overall.corrected.value == pytest.approx(0.762 - 0.05)


@pytest.fixture
def by_answer() -> Run:
    """A profile that scores each answer: .6 correctness + .4 completeness on 0-1, a negative question by its check.

    q1: .6 x (5-1)/4 + .4 x (3-1)/4 = 0.8; q2: .6 x 2/4 + .4 x 2/4 = 0.5; q3, negative: 1.
    """
    answers = answers_to(["a", "a", "negative"])
    spec = {
        "name": "by_answer",
        "title": {"en": "By answer", "ko": "답변별"},
        "unit": "per_answer",
        "normalise": "min_max",
        "parts": [{"metric": "correctness", "weight": 0.6}, {"metric": "completeness", "weight": 0.4}],
        "whole_score": {"metric": "negative_detection", "categories": ["negative"]},
    }
    scored_run = run_over(answers, profile=make_profile(answers.project, spec))
    score_all(
        scored_run, {"correctness": [5, 3, 3], "completeness": [3, 3, 3], "negative_detection": [NOT_APPLICABLE, NA, 1]}
    )
    return scored_run


def test_per_answer_profile_averages_the_answer_scores(by_answer: Run) -> None:
    report = make_report(by_answer)
    assert report.overall.judge_only.value == pytest.approx((0.8 + 0.5 + 1) / 3)
    assert [answer_line.score for answer_line in report.answers] == pytest.approx([0.8, 0.5, 1.0])
    assert [answer_line.answer.question_id for answer_line in report.worst] == ["q2", "q1"]


def test_per_answer_profile_is_corrected_by_contributions(by_answer: Run) -> None:
    """Correctness rated 3 everywhere, a census: q1 falls to .6 x .5 + .4 x .5 = 0.5, q2 stays, and q3 is decided by
    its check whatever its correctness."""
    for answer in answer_rows(by_answer):
        imported_rating(answer, metric("correctness"), "e1", 3)
    corrected = make_report(by_answer).overall.corrected
    assert corrected.value == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert set(corrected.extra["as_it_came"]) == {"negative_detection"}
    # completeness (.4, judged 3 of 5, scale 1 to 5) counts in q1 and q2 only: q3 is decided by its check
    assert set(corrected.partly_corrected) == {"completeness"}


def test_scaled_weights_are_explained_in_every_output(by_answer: Run) -> None:
    """Without an answer that negative_detection (15%) applies to, the others are divided by .85: .15 -> .17647, ...;
    and of the profile by answer, one of two answers has only correctness, whose .6 becomes 1."""
    scored_run = run_over(answers_to(["single_hop"] * 4))
    judge_scores = {"correctness": [5, 4, 4, 3], "faithfulness": [4] * 4, "completeness": [3] * 4}
    score_all(
        scored_run,
        {"keyword_hit": [1] * 4, "keyword_coverage": [1] * 4, "negative_detection": [NA] * 4, **judge_scores},
    )
    overall = make_report(scored_run).overall
    assert overall.weights["keyword_hit"] == pytest.approx(0.15 / 0.85)
    assert sum(overall.weights.values()) == pytest.approx(1)
    assert "weights" not in dict(summary_json(make_report(by_answer))["overall"])
    assert make_report(by_answer).overall.reweighted == 0
    second_run = run_over(answers_to(["a", "a"]), profile=by_answer.profile_version)
    score_all(second_run, {"correctness": [5, 3], "completeness": [3, NA], "negative_detection": [NA, NA]})
    assert summary_json(make_report(second_run))["overall"]["reweighted_answers"] == 1
    messages = {
        scored_run: re.compile(r"not applicable to any answer: .+ \(15%\) \(other weights scaled up\)"),
        second_run: re.compile("a part does not apply to 1 of 2 answers, so the others weigh more"),
    }
    for run, sentence in messages.items():
        output = StringIO()
        call_command("results", str(run.pk), stdout=output)
        client = Client()
        client.force_login(make_user(Role.VIEWER, run.project))
        files = [b"".join(export(run, form).chunks).decode() for form in ("html", "md")]
        page = client.get(reverse("run", args=[run.pk])).content.decode()
        for location, text in {"terminal": output.getvalue(), "html": files[0], "md": files[1], "page": page}.items():
            assert sentence.search(text), (run, location)


def test_failed_part_fails_the_answer_score_and_bounds_the_mean() -> None:
    answers = answers_to(["a"] * 11)
    parts = [{"metric": "correctness", "weight": 1.0}]
    spec = {"name": "one", "title": {"en": "One", "ko": "하나"}, "unit": "per_answer", "parts": parts}
    scored_run = run_over(answers, profile=make_profile(answers.project, spec | {"normalise": "min_max"}))
    score_all(scored_run, {"correctness": [5] * 5 + [3] * 5 + [FAILED]})
    figure = make_report(scored_run).overall.judge_only
    # (5 x 1 + 5 x 0.5) / 10; with the failed one at 0 or 1 over 11: 7.5/11 and 8.5/11
    assert (figure.value, figure.n) == (pytest.approx(0.75), 10)
    assert (figure.worst, figure.best) == (pytest.approx(7.5 / 11), pytest.approx(8.5 / 11))


def test_initial_and_final_ratings_give_the_mean_shift(example: Run) -> None:
    anna, row = make_user(), metric("correctness")
    queue = queue_for(example, [row], [anna])
    for answer, first, last in zip(answer_rows(example)[:2], [2, 3], [4, 3], strict=True):
        assignment = assignment_of(queue, answer, anna, example)
        rate(assignment, row, first)
        rate(assignment, row, last, phase="final")
    # (2/4 + 0/4) / 2
    assert make_report(example).overall.mean_shift == pytest.approx(0.25)


def test_the_number_of_queries_does_not_grow_with_the_run(
    example: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    draw_into(queue_for(example, [metric("correctness")], []), example, [("all", 0.5, n < 30) for n in range(60)])
    for answer in answer_rows(example)[:30]:
        imported_rating(answer, metric("correctness"), "e1", 3)
    # 12 gather: run, answers, flags upheld, judges, scores, ratings, overrides, metrics, frame, criteria, skips, and
    # what a lead accepted of the unrated parts.
    # 6 trace: models that answered, judges, preflights, draws, costs by rubric and of preflights (in sum the whole).
    # 1 counts units, 1 looks for a repair of the labels (by a feature), and 2 read the lengths of judged answers, which
    # are kept for a day.
    repairs = int(is_installed("retrieval_truth"))
    with django_assert_num_queries(24 + repairs):
        make_report(example)
    with django_assert_num_queries(22 + repairs):
        make_report(example)
