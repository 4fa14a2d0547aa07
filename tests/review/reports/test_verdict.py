"""What runs say first: the sentences of every kind of run, written down; the same on page, in files and in print."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO
from itertools import cycle, islice

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from evaluation.core.registry import Bilingual
from evaluation.core.roles import Role
from evaluation.models import Run
from review.plans.ahead import planned_review
from review.reports.gathering import gather
from review.reports.report import report_of
from review.reports.verdict import MetricTrust, Trust, metric_trust, verdict_of
from tests.factories import make_user
from tests.review.builders import (
    answer_rows,
    answers_to,
    assignment_of,
    draw_into,
    metric,
    queue_for,
    rate,
    run_over,
    score_all,
)
from tests.review.sampled import OTHERS

pytestmark = pytest.mark.django_db
JUDGED = ("correctness", "faithfulness", "completeness")
ANSWERS = 60
LEVELS = list(islice(cycle([1, 2, 3, 4, 5]), ANSWERS))


def judged_run(state: str = Run.State.COMPLETED) -> Run:
    """Sixty answers; the judge gives 1, 2, 3, 4, 5 in turn on all three criteria, and every rule is met."""
    run = run_over(answers_to(["a"] * ANSWERS), state=state)
    rules = {name: [1.0] * ANSWERS for name in OTHERS if name not in JUDGED}
    score_all(run, dict.fromkeys(JUDGED, LEVELS) | rules)
    return run


def rated(run: Run, *experts: list[int], answers: int = ANSWERS) -> Run:
    """A census in which the n-th expert gives the n-th list on all three criteria, so far of the first ``answers``."""
    people = [make_user() for _ in experts]
    rows = [metric(name) for name in JUDGED]
    queue = queue_for(run, rows, people)
    draw_into(queue, run, [("all", 1.0, True)] * ANSWERS)
    for at, answer in enumerate(answer_rows(run)[:answers]):
        for person, values in zip(people, experts, strict=True):
            assignment = assignment_of(queue, answer, person, run)
            for row in rows:
                rate(assignment, row, values[at])
    return run


def said(run: Run) -> tuple[str, ...]:
    basis = gather(run)
    return verdict_of(replace(report_of(basis), next_review=planned_review(basis))).sentences


KIND, HARSH = [list(islice(cycle(levels), ANSWERS)) for levels in ([5, 5, 4, 5, 5], [1, 2, 1, 1, 2])]


def test_a_good_judge() -> None:
    # experts and judge say the same of every answer: kappa 1; overall .4 of the rules + .6 x 3 / 5 = .76
    assert said(rated(judged_run(), LEVELS, LEVELS)) == (
        "Yes for Correctness, Faithfulness, Completeness: experts agree with each other 1.00, with the judge 1.00 "
        "(0: by chance, 1: always).",
        "The score to quote is 0.76: experts have rated every answer.",
        "Compare it with another run over the same questions.",
    )


def test_a_bad_judge() -> None:
    # experts give 5 5 4 5 5 whatever the judge gives: both columns of products of deviations sum to 0, kappa 0;
    # overall .4 + .6 x 4.8 / 5 = .976
    assert said(rated(judged_run(), KIND, KIND)) == (
        "No for Correctness, Faithfulness, Completeness: experts agree with each other 1.00, with the judge 0.00 "
        "(0: by chance, 1: always).",
        "The score to quote is 0.98: experts have rated every answer.",
        "Read the largest disagreements and improve the judge's prompt.",
    )


def test_no_ratings() -> None:
    assert said(judged_run()) == (
        "Nobody knows yet whether the judge can be trusted: no expert has rated an answer.",
        "There is no score to quote yet: 0.76 is only what the judge says.",
        "Review 20 answers, about 35 min, for an interval of about 0.05 either way.",
    )


def test_few_ratings() -> None:
    assert said(rated(judged_run(), LEVELS, answers=12)) == (
        "Too early to say for Correctness, Faithfulness, Completeness: 12 answers rated, 20 needed.",
        "There is no score to quote yet: 0.76 still rests on the judge where experts did not rate.",
        "Review the 48 answers that are left, about 84 min, and the score is exact for this run.",
    )


def test_disagreeing_experts() -> None:
    # quadratic kappa 1 - E(d squared) / (both variances + the squared difference of means):
    # d = 4 3 3 4 3, E = 11.8; variances .16 and .24, means 4.8 and 1.4: 1 - 11.8 / (.4 + 11.56) = .013
    assert said(rated(judged_run(), KIND, HARSH)) == (
        "Nobody can say for Correctness, Faithfulness, Completeness: experts agree with each other only 0.01 "
        "(0: by chance, 1: always), so nothing tells whether the judge is right.",
        "The score to quote is 0.77: experts have rated every answer.",
        "Settle with the experts what to look for, before more is rated: Correctness, Faithfulness, Completeness.",
    )


def test_an_incomplete_run() -> None:
    run = judged_run(Run.State.INCOMPLETE)
    Run.objects.filter(pk=run.pk).update(reason="correctness: 3/6")
    run.refresh_from_db()
    assert said(run) == (
        "Nobody knows yet whether the judge can be trusted: no expert has rated an answer.",
        "There is no score to quote. Too many values are missing: Correctness for 3 of 6 answers.",
        "Retry what failed.",
    )


def test_a_run_without_a_judge() -> None:
    run = run_over(answers_to(["a"] * ANSWERS), judged=False)
    score_all(
        run,
        {"keyword_hit": [1.0] * ANSWERS, "keyword_coverage": [0.5] * ANSWERS, "negative_detection": [1.0] * ANSWERS},
    )
    assert said(run) == (  # .2 x 1 + .1 x .5 + .1 x 1 = .35 of .4
        "No judge scored these answers: rules computed the figures, so there is no judge to doubt.",
        "No overall score to quote: rules alone give 0.87 for 40% of the profile's weight.",
        "Compare it with another run over the same questions.",
    )


@pytest.mark.parametrize(
    ("judge", "experts", "n", "shared", "trust"),
    [
        (0.39, 0.9, 20, 20, Trust.NO),
        (0.4, 0.9, 20, 20, Trust.CARE),
        (0.59, 0.9, 20, 20, Trust.CARE),
        (0.6, 0.9, 50, 20, Trust.YES),
        (0.6, 0.9, 49, 20, Trust.CARE),
        (0.9, 0.9, 19, 19, Trust.FEW),
        (0.9, 0.39, 20, 20, Trust.EXPERTS_DISAGREE),
        (0.9, 0.39, 50, 19, Trust.YES),  # too few answers of two experts to say that they disagree
        (0.1, None, 20, 0, Trust.NO),
        (None, 0.9, 20, 20, Trust.UNDEFINED),
        (None, None, 0, 0, Trust.UNRATED),
    ],
)
def test_where_trust_ends(judge: float | None, experts: float | None, n: int, shared: int, trust: Trust) -> None:
    beside = {"scale": "levels 1..5", "cohen_kappa_quadratic": experts, "n": shared}
    found = metric_trust("m", Bilingual("M", "M"), {"cohen_kappa_quadratic": judge, "n": n}, beside)
    assert found.trust is trust


def test_what_a_surer_verdict_takes() -> None:
    early = MetricTrust("m", Bilingual("M", "M"), Trust.FEW, judge=0.5, n=12)
    assert early.missing == "8 more rated answers"
    assert replace(early, trust=Trust.CARE, judge=0.7, n=30).missing == "20 more rated answers"  # of 50 for a yes
    assert replace(early, trust=Trust.YES, n=50, shared=5).missing == "15 more answers rated by two experts"
    assert not replace(early, trust=Trust.YES, n=50, shared=20).missing


def test_page_report_command_and_rest_say_the_same() -> None:
    run = rated(judged_run(), KIND, KIND)
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    judge, score, _next = said(run)
    printed = StringIO()
    call_command("results", str(run.pk), stdout=printed)
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    told = json.loads(b"".join(client.get(reverse("run-report", args=[run.pk]), {"format": "json"})))
    for text in (page, " ".join(printed.getvalue().split())):
        assert judge in text
        assert score in text
    assert told["verdict"]["judge"] == judge
    assert told["verdict"]["metrics"]["correctness"]["trust"] == "no"


@pytest.mark.parametrize(
    ("judge", "experts", "n", "shared", "says"),
    [
        (None, None, 0, 0, "No expert has rated an answer."),
        (0.9, None, 19, 0, "Too few answers are rated to tell."),
        (0.9, 0.3, 60, 60, "Experts rate the same answers differently, so there is nothing to hold the judge against."),
        (None, 0.9, 60, 60, "There are ratings, but agreement beyond chance cannot be computed from them."),
        (0.19, 0.9, 60, 60, "Judge and experts agree hardly more than chance would have it."),
        (0.2, 0.9, 60, 60, "Judge and experts agree too little to rely on the judge."),
        (0.4, 0.9, 60, 60, "Judge and experts agree in part: means are rough, and a single value may be wrong."),
        (0.6, 0.9, 49, 49, "Judge and experts agree well, but on too few answers to be sure."),
        (0.8, None, 60, 0, "Judge and experts agree well; how well experts agree with each other is not known yet."),
        (0.8, 0.9, 60, 19, "Judge and experts agree well; how well experts agree with each other is not known yet."),
        (0.8, 0.9, 60, 20, "Judge and experts agree well, though experts agree with each other better."),
        (0.86, 0.9, 60, 20, "The judge agrees with experts as well as they agree with each other."),
    ],
)
def test_each_row_says_in_words_what_its_figures_mean(
    judge: float | None, experts: float | None, n: int, shared: int, says: str
) -> None:
    beside = {"scale": "1..5", "n": shared, "cohen_kappa_quadratic": experts}
    found = metric_trust("m", Bilingual("M", "M"), {"cohen_kappa_quadratic": judge, "n": n}, beside)
    assert found.says == says
    with override("ko"):
        assert re.fullmatch(r"[가-힣 .,]+", found.says)
