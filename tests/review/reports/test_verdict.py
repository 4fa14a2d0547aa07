"""Verdict sentences for every kind of run, which are equal on the page, in files and in print."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from itertools import cycle, islice
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from evaluation.core.metric_specs import Bilingual
from evaluation.core.roles import Role
from evaluation.core.scales import Scale
from evaluation.models import Run
from review.queues.planning import next_review_json
from review.reports.inputs import load_inputs
from review.reports.report import build_report
from review.reports.verdict import MetricTrust, judge_sentences, verdict_of
from review.statistics.agreement.trust import JudgeTrust, Trust
from tests.factories import make_user
from tests.review.builders import (
    answer_rows,
    answers_to,
    draw_into,
    metric,
    queue_for,
    rate_each,
    run_over,
    score_all,
)
from tests.review.sampled import OTHER_SCORES

pytestmark = pytest.mark.django_db
JUDGED = ("correctness", "faithfulness", "completeness")
ANSWERS = 60
LEVELS = list(islice(cycle([1, 2, 3, 4, 5]), ANSWERS))


def judged_run(state: str = Run.State.COMPLETED) -> Run:
    """Sixty answers; the judge gives 1, 2, 3, 4, 5 in turn on all three criteria, and every rule is met."""
    run = run_over(answers_to(["a"] * ANSWERS), state=state)
    rules = {name: [1.0] * ANSWERS for name in OTHER_SCORES if name not in JUDGED}
    score_all(run, dict.fromkeys(JUDGED, LEVELS) | rules)
    return run


def rate_by_experts(run: Run, *experts: Sequence[float], answers: int = ANSWERS) -> Run:
    """Rate the first ``answers`` answers of a census: the n-th expert gives the n-th list on all three criteria."""
    reviewers = [make_user() for _ in experts]
    rows = [metric(name) for name in JUDGED]
    queue = queue_for(run, rows, reviewers)
    draw_into(queue, run, [("all", 1.0, True)] * ANSWERS)
    ratings = {reviewer: values[:answers] for reviewer, values in zip(reviewers, experts, strict=True)}
    rate_each(queue, rows, answer_rows(run)[:answers], ratings)
    return run


def verdict_sentences(run: Run) -> tuple[str, ...]:
    basis = load_inputs(run)
    return verdict_of(replace(build_report(basis), next_review=next_review_json(basis))).sentences


KIND, HARSH = [list(islice(cycle(levels), ANSWERS)) for levels in ([5, 5, 4, 5, 5], [1, 2, 1, 1, 2])]


def test_a_good_judge() -> None:
    # experts and judge say the same of every answer: kappa 1; overall .4 of the rules + .6 x 3 / 5 = .76
    assert verdict_sentences(rate_by_experts(judged_run(), LEVELS, LEVELS)) == (
        "The judge can be trusted for Correctness, Faithfulness, Completeness: experts with each other 1.00, judge "
        "with experts 1.00 (0 = chance, 1 = perfect).",
        "Score to report: 0.76. Experts have rated every answer. 95% CI for questions like these: 0.71–0.80.",
        "Compare it with another run on the same questions.",
    )


def test_a_bad_judge() -> None:
    # experts give 5 5 4 5 5 whatever the judge gives: both columns of products of deviations sum to 0, kappa 0;
    # overall .4 + .6 x 4.8 / 5 = .976
    assert verdict_sentences(rate_by_experts(judged_run(), KIND, KIND)) == (
        "Do not rely on the judge for Correctness, Faithfulness, Completeness: on average the judge is too strict by "
        "1.80 on a scale of 1 to 5 (agreement 0.00; 0 = chance, 1 = perfect).",
        "Score to report: 0.98. Experts have rated every answer. 95% CI for questions like these: 0.96–0.99.",
        "Check the largest disagreements, and use a language model as the judge.",
    )


def test_no_ratings() -> None:
    assert verdict_sentences(judged_run()) == (
        "Not known yet whether the judge can be trusted: no expert has rated an answer.",
        "No score to report yet: 0.76 is only the judge's score.",
        "Review 20 answers (about 35 min) for a margin of ±0.05.",
    )


def test_few_ratings() -> None:
    assert verdict_sentences(rate_by_experts(judged_run(), LEVELS, answers=12)) == (
        "Too few ratings to tell whether the judge can be trusted for Correctness, Faithfulness, Completeness: rate "
        "about 8 more answers (12 so far).",
        "No score to report yet: 0.76 still relies on the judge for unrated answers.",
        "Review the remaining 48 answers (about 84 min). The score is then exact for this run. About 8 "
        "of them should tell whether the judge can be trusted.",
    )


def test_disagreeing_experts() -> None:
    # quadratic kappa 1 - E(d squared) / (both variances + the squared difference of means):
    # d = 4 3 3 4 3, E = 11.8; variances .16 and .24, means 4.8 and 1.4: 1 - 11.8 / (.4 + 11.56) = .013
    assert verdict_sentences(rate_by_experts(judged_run(), KIND, HARSH)) == (
        "Cannot tell for Correctness, Faithfulness, Completeness: experts agree with each other only 0.01 "
        "(0 = chance, 1 = perfect), so there is no standard to compare the judge with.",
        "No score to report yet: 0.77 is based on experts who disagree with each other on Correctness, "
        "Faithfulness, Completeness.",
        "Agree on the criteria with the experts before collecting more ratings: Correctness, "
        "Faithfulness, Completeness.",
    )


@pytest.mark.parametrize(
    ("reason", "missing"),
    [
        ("correctness: 3/6", "Correctness for 3 of 6 answers"),
        ("answer_overall: 3/6", "Overall score of the answer for 3 of 6 answers"),
    ],
)
def test_an_incomplete_run(reason: str, missing: str) -> None:
    run = judged_run(Run.State.INCOMPLETE)
    Run.objects.filter(pk=run.pk).update(reason=reason)
    run.refresh_from_db()
    assert verdict_sentences(run) == (
        "Not known yet whether the judge can be trusted: no expert has rated an answer.",
        f"No score to report. Too many values are missing: {missing}.",
        "Retry the failed results.",
    )


def test_a_run_without_a_judge() -> None:
    run = run_over(answers_to(["a"] * ANSWERS), judged=False)
    score_all(
        run,
        {"keyword_hit": [1.0] * ANSWERS, "keyword_coverage": [0.5] * ANSWERS, "negative_detection": [1.0] * ANSWERS},
    )
    assert verdict_sentences(run) == (  # .2 x 1 + .1 x .5 + .1 x 1 = .35 of .4
        "No judge scored these answers. All figures were computed by rules.",
        "No overall score to report: rules give 0.87 for 40% of the profile's weight.",
        "Compare it with another run on the same questions.",
    )


def figures(trust: Trust, **overrides: Any) -> MetricTrust:
    defaults = {"statistic": "cohen_kappa_quadratic", "n": 60, "shared": 60, "value": 0.7, "low": 0.6, "high": 0.8}
    return MetricTrust("m", Bilingual("M", "M"), JudgeTrust(trust, **defaults | overrides), Scale.parse("1..5"))


@pytest.mark.parametrize(
    ("metric_trust", "missing"),
    [
        (figures(Trust.CANNOT_TELL, n=12, more=8), "8 more rated answers"),
        (
            figures(Trust.CANNOT_TELL, reason="one_value_only"),
            "Can't be computed: everyone gave the same score.",
        ),
        (figures(Trust.YES, shared=5), "15 more answers rated by two experts"),
        (figures(Trust.YES, shared=20), ""),
        (figures(Trust.CARE, commonest=5.0, share=0.95), "more ratings of answers that the judge scored differently"),
    ],
)
def test_missing_ratings_of_a_surer_verdict(metric_trust: MetricTrust, missing: str) -> None:
    assert metric_trust.missing == missing


@pytest.mark.parametrize(
    ("metric_trust", "chip"),
    [
        (figures(Trust.CANNOT_TELL, more=38), "cannot tell yet: 38 more ratings"),
        (figures(Trust.CANNOT_TELL, reason="one_value_only"), "cannot tell yet"),
        (figures(Trust.CARE, bias=0.84, lenient=True), "with care: too lenient by 0.84"),
        (figures(Trust.CARE, bias=-1.2), "with care: too strict by 1.20"),
        (figures(Trust.NO, bias=-1.2), "no"),
        (figures(Trust.BUILT_ON, n=0), "no unseen ratings"),
    ],
)
def test_chip_shortens_the_verdict(metric_trust: MetricTrust, chip: str) -> None:
    assert metric_trust.chip == chip


def test_metrics_with_one_verdict_share_a_sentence_worst_first() -> None:
    metrics = [
        figures(Trust.YES, experts=0.9),
        figures(Trust.CARE, bias=0.8, lenient=True, value=0.5),
        figures(Trust.CARE, bias=1.1, lenient=True, value=0.4),
        figures(Trust.CANNOT_TELL, n=30, more=11),
        figures(Trust.BUILT_ON, n=0),
    ]
    assert judge_sentences(metrics) == (
        "Use the judge with care for M, M: on average the judge is too lenient by 0.80 to 1.10 on a scale of 1 to "
        "5 (agreement 0.40 to 0.50; 0 = chance, 1 = perfect). Too few ratings to tell whether the "
        "judge can be trusted for M: rate about 11 more answers (30 so far). "
        "The judge can be trusted for M: judge with experts 0.70. "
        "Cannot tell for M: every rating was used to build the judge's prompt, so none of them tests it."
    )


def test_page_report_command_and_rest_have_one_verdict() -> None:
    run = rate_by_experts(judged_run(), KIND, KIND)
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    judge, score, _next = verdict_sentences(run)
    output = StringIO()
    call_command("results", str(run.pk), stdout=output)
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    report = json.loads(b"".join(client.get(reverse("run-report", args=[run.pk]), {"format": "json"})))
    for text in (page, " ".join(output.getvalue().split())):
        assert judge in text
        assert score in text
    assert report["verdict"]["judge"] == judge
    assert report["verdict"]["metrics"]["correctness"]["trust"] == "no"


@pytest.mark.parametrize(
    ("metric_trust", "meaning"),
    [
        (figures(Trust.UNRATED, n=0), "No expert has rated an answer."),
        (figures(Trust.CANNOT_TELL, n=19, more=1), "Too few answers are rated to tell."),
        (figures(Trust.CANNOT_TELL, more=30), "The ratings so far can't tell a good judge from a poor one."),
        (
            figures(Trust.EXPERTS_DISAGREE),
            "Experts disagree on the same answers, so there is no standard to compare the judge with.",
        ),
        (figures(Trust.NO, value=0.19), "Judge and experts agree little more than chance."),
        (figures(Trust.NO, value=0.2), "Judge and experts agree too little to rely on the judge."),
        (figures(Trust.CARE), "Judge and experts agree partly. Means are rough, and a single value may be wrong."),
        (
            figures(Trust.CARE, commonest=5.0),
            "Nearly all ratings are the same. The judge matches them, but may miss the answers that differ.",
        ),
        (
            figures(Trust.CARE, bias=0.8, lenient=True),
            "The judge scores clearly higher than experts. Use the corrected score.",
        ),
        (
            figures(Trust.YES, value=0.8, shared=19, experts=0.9),
            "Judge and experts agree well. How well experts agree with each other is still unknown.",
        ),
        (
            figures(Trust.YES, value=0.8, experts=0.9),
            "Judge and experts agree well, but experts agree with each other better.",
        ),
        (
            figures(Trust.YES, value=0.86, experts=0.9),
            "The judge agrees with experts as well as they agree with each other.",
        ),
    ],
)
def test_meaning_explains_the_figures_of_a_row(metric_trust: MetricTrust, meaning: str) -> None:
    assert metric_trust.meaning == meaning
    with override("ko"):
        assert re.fullmatch(r"[가-힣 .,:]+", metric_trust.meaning)
