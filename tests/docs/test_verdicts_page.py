"""docs/verdicts.md: the sentences that pages show first of ten different runs are what the product says, in both
languages. A failure prints the lines as they should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.utils.translation import override

from evaluation.core.samples import QuestionSpec
from evaluation.models import Run
from review.comparisons.verdict import lead_sentence, next_sentence, other_sentence
from review.comparisons.whole import compare
from review.plans.ahead import planned_review
from review.reports.gathering import gather
from review.reports.report import report_of
from review.reports.verdict import verdict_of
from tests.docs.figures import LANGUAGES, part
from tests.factories import make_answer_set, make_project, make_question_set
from tests.review.builders import run_over, score_all
from tests.review.comparisons.test_difference import a_run, questions
from tests.review.reports.test_verdict import ANSWERS, HARSH, KIND, LEVELS, judged_run, rated
from tests.review.sampled import rate_all, rate_the_others

pytestmark = pytest.mark.django_db
PAGE = "verdicts.md"


def incomplete() -> Run:
    run = judged_run(Run.State.INCOMPLETE)
    Run.objects.filter(pk=run.pk).update(reason="correctness: 36/60")
    run.refresh_from_db()
    return run


def retrieval_only() -> Run:
    specs = [
        QuestionSpec(id=f"q{n}", category="c", text=f"Which {n}?", ground_truth_chunk_ids=(f"c{n}",))
        for n in range(ANSWERS)
    ]
    answers = make_answer_set(make_question_set(make_project(), specs), evaluation_type="retrieval_only")
    run = run_over(answers, judged=False)
    Run.objects.filter(pk=run.pk).update(config=run.config | {"evaluation_type": "retrieval_only"})
    run.refresh_from_db()
    score_all(run, {"hit_at_k": [1.0, 0.0] * (ANSWERS // 2), "reciprocal_rank": [0.5] * ANSWERS})
    return run


def judged_alike(*experts: list[int]) -> list[Run]:
    """Two runs that the judge scored alike, every answer of both rated."""
    asked = questions(ANSWERS)
    runs = [a_run(asked, [4] * ANSWERS) for _ in experts]
    for run, values in zip(runs, experts, strict=True):
        rate_all(run, values)
        rate_the_others(run)
    return runs


ONE_RUN: dict[str, Callable[[], Run]] = {
    "good judge": lambda: rated(judged_run(), LEVELS, LEVELS),
    "bad judge": lambda: rated(judged_run(), KIND, KIND),
    "no ratings": judged_run,
    "few ratings": lambda: rated(judged_run(), LEVELS, answers=12),
    "disagreeing experts": lambda: rated(judged_run(), KIND, HARSH),
    "incomplete": incomplete,
    "retrieval only": retrieval_only,
}
TWO_RUNS: dict[str, Callable[[], list[Run]]] = {
    "tie": lambda: judged_alike([4, 3, 4, 5] * 15, [4, 4, 3, 5] * 15),
    "worse": lambda: judged_alike([5] * ANSWERS, [4, 3, 2, 3] * 15),
    "better but not corrected": lambda: [
        a_run(asked := questions(40), [4] * 40),
        a_run(asked, [5, 4] * 18 + [2, 4, 2, 4]),
    ],
}


def of_one(run: Run) -> list[str]:
    basis = gather(run)
    return list(verdict_of(replace(report_of(basis), next_review=planned_review(basis))).sentences)


def of_two(runs: list[Run]) -> list[str]:
    found, names = compare(runs).differences[0], {"run": "new", "baseline": "old"}
    return [lead_sentence(found, names), other_sentence(found, names), next_sentence(found, names)]


def written(text: str, case: str) -> list[str]:
    """The sentences that stand under a case's marker."""
    block = text.split(f"<!-- case: {case} -->\n", 1)[1].split("\n\n", 1)[0]
    return [line.removeprefix("- ") for line in block.splitlines()]


@pytest.mark.parametrize("case", [*ONE_RUN, *TWO_RUNS])
def test_the_page_says_what_is_said(case: str) -> None:
    one, two = ONE_RUN.get(case), TWO_RUNS.get(case)
    made = one() if one else two() if two else []
    for language in LANGUAGES:
        with override(language):
            said = of_one(made) if isinstance(made, Run) else of_two(made)
        wanted = "\n".join([f"<!-- case: {case} -->", *(f"- {line}" for line in said)])
        assert written(part(PAGE, language), case) == said, f"\n{language}\n{wanted}"


def test_the_page_is_in_both_languages() -> None:
    english, korean = (part(PAGE, language) for language in LANGUAGES)
    assert english.count("<!-- case:") == korean.count("<!-- case:") == 10
