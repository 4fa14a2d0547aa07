"""The card of the profile on the run page, in both languages."""

from __future__ import annotations

import pytest
from django.utils import translation

from evaluation.judges.shipped import profile_row
from evaluation.messages.explanations import category_name
from evaluation.models import Run
from review.reports.category_cards import ProfileCard, profile_card
from review.templatetags.figures import share
from tests.review.builders import FAILED, answers_to, make_report, run_over, score_all
from tests.review.reports.test_by_profile import ragas_run, regulation_run

pytestmark = pytest.mark.django_db


def load_card(run: Run, language: str = "en") -> ProfileCard:
    with translation.override(language):
        return profile_card(make_report(run))


def test_pass_counts_and_reasons_are_translated() -> None:
    run = regulation_run()
    english, korean = load_card(run).passing, load_card(run, "ko").passing
    assert english is not None
    assert korean is not None
    rate = english.rate
    assert (share(rate.rate), rate.passed, english.decided, rate.unknown) == ("33%", 1, 3, 1)
    assert set(english.reasons) == {
        ("Phone number that is in no source", 1),
        ("Overall score below its threshold", 1),
    }
    phone_reason, threshold_reason = sorted(reason for reason, _count in korean.reasons)[::-1]
    assert phone_reason == "출처에 없는 전화번호"
    assert threshold_reason.startswith("종합 점수")


def test_grades_classes_and_spread_are_tables() -> None:
    profile_card = load_card(ragas_run())
    band, correct = profile_card.bands[0][1].band, profile_card.classes[0][1].total[0]
    assert band is not None
    assert band.title.en == "C (moderate)"
    assert (correct.label, correct.count, share(correct.share)) == ("CORRECT", 1, "25%")
    assert [category_name(row.category) for row in profile_card.spread] == [
        "",
        "one fact",
        "two linked facts",
        "negative question",
    ]
    assert len(profile_card.section.deviations) == 7


def test_pattern_tables_mark_the_cell_of_the_run() -> None:
    answers = answers_to(["single_hop"] * 2)
    run = run_over(answers, profile=profile_row(answers.project, "generation"))
    score_all(run, {"recall_at_k": [1, 1], "generation_faithfulness": [0.9, 0.9], "answer_relevancy": [0.2, FAILED]})
    (patterns, of_patterns), (diagnosis, of_diagnosis) = load_card(run, "ko").diagnoses
    assert [cell.cell.title.ko for cell in of_patterns if cell.run] == ["질문에 맞지 않는 문단"]
    assert [cell.signs for cell in of_patterns if cell.run] == [("충실도 높음", "적합도 낮음")]
    assert [cell.cell.title.ko for cell in of_diagnosis if cell.run] == ["생성 단계의 문제"]
    assert (patterns.unknown, diagnosis.unknown) == (1, 1)


def test_profile_without_extras_has_no_card() -> None:
    answers = answers_to(["single_hop"])
    assert load_card(run_over(answers, profile=profile_row(answers.project, "standard"))).empty


def test_differences_from_the_source_have_a_card() -> None:
    profile_card = load_card(run_over(answers_to(["single_hop"])))
    assert not profile_card.empty
    assert profile_card.section.deviations[0].en.startswith("Keywords")
