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
from tests.review.reports.test_by_profile import ragas, regulation

pytestmark = pytest.mark.django_db


def card(run: Run, language: str = "en") -> ProfileCard:
    with translation.override(language):
        return profile_card(make_report(run))


def test_who_passes_and_why_not_is_told_in_the_language_of_the_page() -> None:
    run = regulation()
    english, korean = card(run).passing, card(run, "ko").passing
    assert english is not None
    assert korean is not None
    rate = english.rate
    assert (share(rate.rate), rate.passed, english.decided, rate.unknown) == ("33%", 1, 3, 1)
    assert set(english.reasons) == {
        ("Phone number that is in no source", 1),
        ("Overall score below its threshold", 1),
    }
    phone, below = sorted(reason for reason, _count in korean.reasons)[::-1]
    assert phone == "출처에 없는 전화번호"
    assert below.startswith("종합 점수")


def test_grades_classes_and_spread_stand_in_tables() -> None:
    found = card(ragas())
    band, correct = found.bands[0][1].band, found.classes[0][1].total[0]
    assert band is not None
    assert band.title.en == "C (moderate)"
    assert (correct.label, correct.count, share(correct.share)) == ("CORRECT", 1, "25%")
    assert [category_name(row.category) for row in found.spread] == [
        "",
        "one fact",
        "two linked facts",
        "negative question",
    ]
    assert len(found.section.deviations) == 7


def test_the_field_of_the_run_is_marked_in_each_table_of_high_and_low() -> None:
    answers = answers_to(["single_hop"] * 2)
    run = run_over(answers, profile=profile_row(answers.project, "generation"))
    score_all(run, {"recall_at_k": [1, 1], "generation_faithfulness": [0.9, 0.9], "answer_relevancy": [0.2, FAILED]})
    (patterns, of_patterns), (diagnosis, of_diagnosis) = card(run, "ko").diagnoses
    assert [cell.cell.title.ko for cell in of_patterns if cell.run] == ["질문에 맞지 않는 문단"]
    assert [cell.signs for cell in of_patterns if cell.run] == [("충실도 높음", "적합도 낮음")]
    assert [cell.cell.title.ko for cell in of_diagnosis if cell.run] == ["생성 단계의 문제"]
    assert (patterns.unknown, diagnosis.unknown) == (1, 1)


def test_a_profile_with_nothing_to_add_has_no_card() -> None:
    answers = answers_to(["single_hop"])
    assert card(run_over(answers, profile=profile_row(answers.project, "standard"))).empty


def test_what_differs_from_the_source_is_a_card_of_its_own() -> None:
    found = card(run_over(answers_to(["single_hop"])))
    assert not found.empty
    assert found.section.deviations[0].en.startswith("Keywords")
