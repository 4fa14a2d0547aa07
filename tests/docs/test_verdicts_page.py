"""docs/verdicts.md: the first sentences of fifteen runs, in both languages, as the product words them.

``WRITE_DOCS=1 pytest tests/docs/test_verdicts_page.py`` writes them into the page; without it they are compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.utils.translation import override

from evaluation.core.samples import QuestionSpec
from evaluation.criteria.rubrics import activate
from evaluation.judges.shipped import profile_row
from evaluation.models import Run
from evaluation.runs.creation import prepare_run
from review.comparisons.comparison import compare, with_margin
from review.comparisons.verdict import lead_sentence, next_sentence, other_sentence
from review.models import GoldItem
from review.queues.planning import next_review_json
from review.reports.inputs import load_inputs
from review.reports.report import build_report
from review.reports.verdict import verdict_of
from tests.docs.figures import DOCS, LANGUAGES, page_in_language
from tests.factories import make_answer_set, make_project, make_question_set
from tests.review.builders import answer_rows, answers_to, metric, run_over, score, score_all
from tests.review.calibration.labelled import worth
from tests.review.calibration.place import CalibrationSetup
from tests.review.comparisons.test_difference import create_run, make_questions
from tests.review.reports.test_verdict import ANSWERS, HARSH, JUDGED, KIND, LEVELS, judged_run, rate_by_experts
from tests.review.sampled import OTHER_SCORES, rate_all, rate_other_parts

pytestmark = pytest.mark.django_db
PAGE, KOREAN = "verdicts.md", "\n# 한국어\n"


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
    question_set = make_questions(ANSWERS)
    runs = [create_run(question_set, [4] * ANSWERS) for _ in experts]
    for run, values in zip(runs, experts, strict=True):
        rate_all(run, values)
        rate_other_parts(run)
    return runs


def judged_run_with_experts(values: list[float], *experts: list[float]) -> Run:
    """Sixty answers with these values of the judge on every criterion, all rated by experts, in their order."""
    run = run_over(answers_to(["a"] * ANSWERS))
    rules = {name: [1.0] * ANSWERS for name in OTHER_SCORES if name not in JUDGED}
    score_all(run, dict.fromkeys(JUDGED, values) | rules)
    return rate_by_experts(run, *experts)


def skewed() -> Run:
    """Three of sixty answers get a 2 from the expert; the judge gives three others a 2."""
    return judged_run_with_experts([2.0] * 3 + [5.0] * 57, [5.0] * 57 + [2.0] * 3)


def lenient() -> Run:
    """The judge gives a level more than the experts wherever the scale has one."""
    return judged_run_with_experts([min(level + 1.0, 5.0) for level in LEVELS], [float(level) for level in LEVELS])


def undecided() -> Run:
    """Thirty of sixty answers are rated; on every third the expert is far from the judge."""
    experts = [float(6 - level) if index % 3 == 0 else float(level) for index, level in enumerate(LEVELS)]
    return rate_by_experts(judged_run(), experts, answers=30)


def in_sample_run() -> Run:
    """A judge whose prompt was built on every answer that it scored and the experts rated."""
    setup = CalibrationSetup(60)
    activate(setup.create_draft("MINE"), setup.judge, by=None, reason="a better prompt")
    run = prepare_run(setup.run.answer_set, profile_row(setup.run.project, "graphrag"), judge=setup.judge)
    rubric = run.judges.get(rubric_version__family="answer_quality").rubric_version
    holdout_answers = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    for number, answer in enumerate(answer_rows(setup.run)):
        if answer.pk not in holdout_answers:
            version = {"judge_version": setup.judge, "rubric_version": rubric}
            score(run, answer, metric("correctness"), worth(number), **version)
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    run.refresh_from_db()
    return run


ONE_RUN: dict[str, Callable[[], Run]] = {
    "good judge": lambda: rate_by_experts(judged_run(), LEVELS, LEVELS),
    "bad judge": lambda: rate_by_experts(judged_run(), KIND, KIND),
    "no ratings": judged_run,
    "few ratings": lambda: rate_by_experts(judged_run(), LEVELS, answers=12),
    "disagreeing experts": lambda: rate_by_experts(judged_run(), KIND, HARSH),
    "incomplete": incomplete,
    "retrieval only": retrieval_only,
    "skewed": skewed,
    "lenient": lenient,
    "undecided": undecided,
    "built on": in_sample_run,
}
TWO_RUNS: dict[str, Callable[[], list[Run]]] = {
    "tie": lambda: judged_alike([4, 3, 4, 5] * 15, [4, 4, 3, 5] * 15),
    "near": lambda: judged_alike([4, 5, 4, 5] * 15, [4, 5, 4, 5] * 14 + [4, 5, 5, 5]),
    "worse": lambda: judged_alike([5] * ANSWERS, [4, 3, 2, 3] * 15),
    "better but not corrected": lambda: [
        create_run(question_set := make_questions(40), [4] * 40),
        create_run(question_set, [5, 4] * 18 + [2, 4, 2, 4]),
    ],
}

MARGINS = {"near": 0.03}  # differences that do not matter, where one is given


def run_sentences(run: Run) -> list[str]:
    basis = load_inputs(run)
    return list(verdict_of(replace(build_report(basis), next_review=next_review_json(basis))).sentences)


def comparison_sentences(runs: list[Run], margin: float | None) -> list[str]:
    difference = with_margin(compare(runs), margin).differences[0]
    names = {"run": "new", "baseline": "old"}
    return [lead_sentence(difference, names), other_sentence(difference, names), next_sentence(difference, names)]


def sentences_in_page(text: str, case: str) -> list[str]:
    """Return the sentences under a case's marker."""
    block = text.split(f"<!-- case: {case} -->\n", 1)[1].split("\n\n", 1)[0]
    return [line.removeprefix("- ") for line in block.splitlines()]


@pytest.mark.parametrize("case", [*ONE_RUN, *TWO_RUNS])
@pytest.mark.slow
def test_page_shows_the_generated_sentences(case: str) -> None:
    build_run, build_runs = ONE_RUN.get(case), TWO_RUNS.get(case)
    subject = build_run() if build_run else build_runs() if build_runs else []
    for language in LANGUAGES:
        with override(language):
            sentences = (
                run_sentences(subject) if isinstance(subject, Run) else comparison_sentences(subject, MARGINS.get(case))
            )
        if os.environ.get("WRITE_DOCS"):
            write_sentences(case, language, sentences)
        assert sentences_in_page(page_in_language(PAGE, language), case) == sentences, language


def write_sentences(case: str, language: str, sentences: list[str]) -> None:
    """Put the sentences under the case's marker, in the part of the language."""
    parts = (DOCS / PAGE).read_text(encoding="utf-8").split(KOREAN)
    language_index = LANGUAGES[language]
    head, tail = parts[language_index].split(f"<!-- case: {case} -->\n", 1)
    following_blocks = tail.split("\n\n", 1)[1:]
    block = "\n".join(f"- {sentence}" for sentence in sentences)
    parts[language_index] = f"{head}<!-- case: {case} -->\n{block}\n" + "".join(
        f"\n{block_after}" for block_after in following_blocks
    )
    (DOCS / PAGE).write_text(KOREAN.join(parts), encoding="utf-8")


def test_page_has_all_cases_in_both_languages() -> None:
    english, korean = (page_in_language(PAGE, language) for language in LANGUAGES)
    assert english.count("<!-- case:") == korean.count("<!-- case:") == 15
