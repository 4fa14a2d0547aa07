"""The offline baseline answers every family in both languages, plainly and in the right direction."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import AnswerSpec, Nugget, QuestionSpec, Result, Status
from evaluation.judging import baseline
from evaluation.judging.catalogue import families
from evaluation.judging.lexical import BaselineReason, Grade, translate_reason
from tests.evaluation.judging.families.scripted import before
from tests.evaluation.judging.samples import answer, by_baseline, question

KO = {
    "question": "휴학은 몇 년까지 가능한가요?",
    "reference": "일반 휴학은 통산 3년까지 가능합니다(학칙 제21조).",
    "passages": ["제21조 일반 휴학은 통산 3년까지 가능하며 1회에 1년 이내로 한다.", "도서관은 평일 9시에 문을 연다."],
    "good": "일반 휴학은 통산 3년까지 가능합니다(학칙 제21조).",
    "bad": "휴학은 10년까지 되며 총장의 허가가 필요합니다.",
    "nugget": "통산 3년",
}
EN = {
    "question": "How long may a student be on leave?",
    "reference": "A student may be on leave for three years in total.",
    "passages": ["Leave of absence is limited to three years in total for each student.", "The library opens at nine."],
    "good": "A student may be on leave for three years in total.",
    "bad": "Leave is unlimited and needs the permission of the president.",
    "nugget": "three years in total",
}
TEXTS = {"ko": KO, "en": EN}


def judged(family: str, language: str, text: str, **fields: Any) -> dict[str, Result]:
    words = TEXTS[language]
    asked: QuestionSpec = question(
        str(words["question"]),
        **{
            "references": (str(words["reference"]),),
            "nuggets": (Nugget(name=str(words["nugget"])), Nugget(name="허가 신청서 form 7")),
            **fields,
        },
    )
    given: AnswerSpec = answer(text, list(words["passages"]))
    return by_baseline(before(family, asked, given, language=language))


def test_every_family_gets_a_result_for_every_metric() -> None:
    trap = {"category": "negative", "check": "should_not_hallucinate"}
    wrong = []
    for family, language in product(families(), TEXTS):
        results = judged(family, language, str(TEXTS[language]["good"]), **trap)
        failed = {n: r for n, r in results.items() if r.status not in {Status.SCORED, Status.NOT_APPLICABLE}}
        if failed or not results:
            wrong.append((family, language, failed))
    assert wrong == []


@pytest.mark.parametrize("language", ["ko", "en"])
@pytest.mark.parametrize(
    "metric",
    [
        ("claims", "claim_support"),
        ("factual_accuracy", "factual_accuracy"),
        ("generation_faithfulness", "generation_faithfulness"),
        ("regulation_quality", "accuracy"),
        ("regulation_quality", "answer_completeness"),
        ("nuggets", "nugget_support"),
    ],
)
def test_a_good_answer_scores_above_a_bad_one(metric: tuple[str, str], language: str) -> None:
    family, name = metric
    good, bad = (judged(family, language, str(TEXTS[language][which]))[name].value for which in ("good", "bad"))
    assert good is not None
    assert bad is not None
    assert good > bad


@pytest.mark.parametrize("language", ["ko", "en"])
def test_the_passage_with_the_answer_is_the_relevant_one(language: str) -> None:
    results = judged("passages", language, "x")
    assert [f.verdict for f in results["context_precision"].findings] == ["relevant", "irrelevant"]
    assert results["context_average_precision"].value == 100.0
    assert judged("statements", language, "x")["context_recall"].value == 100.0


@pytest.mark.parametrize("language", ["ko", "en"])
def test_classes_follow_the_words(language: str) -> None:
    assert judged("answer_class", language, str(TEXTS[language]["good"]))["answer_class"].label == "CORRECT"
    assert judged("answer_class", language, str(TEXTS[language]["bad"]))["answer_class"].label == "WRONG"


@pytest.mark.parametrize(
    ("text", "label", "passed"),
    [
        ("달 지점에 대한 정보는 문서에 없습니다.", "abstain", 1.0),
        ("달 지점은 고요의 바다 12번지에 있습니다.", "fabricate", 0.0),
        ("도서관은 평일 9시에 문을 엽니다.", "answer", 0.0),
    ],
)
def test_negative_questions_are_labelled_by_predicates(text: str, label: str, passed: float) -> None:
    trap = {"category": "negative", "check": "should_not_hallucinate", "references": ("정보를 찾을 수 없습니다.",)}
    results = judged("negative_questions", "ko", text, **trap)
    assert (results["negative_label"].label, results["negative_detection"].value) == (label, passed)


def test_a_corrected_premise_is_told_from_a_refusal() -> None:
    trap = {
        "category": "negative",
        "check": "should_correct_premise",
        "references": ("TIGER 200은 삼성자산운용이 아니라 미래에셋자산운용이 운용합니다.",),
    }
    text = "TIGER 200은 삼성자산운용이 아니라 미래에셋자산운용의 상품입니다."
    assert judged("negative_questions", "ko", text, **trap)["negative_label"].label == "correct_premise"


def test_a_question_back_costs_nothing_where_it_is_welcome() -> None:
    results = judged("regulation_quality", "ko", "어떤 휴학을 말씀하시나요?", clarification_ok=True)
    assert {result.value for result in results.values()} == {1.0}
    results = judged("regulation_quality", "ko", "어떤 휴학을 말씀하시나요?")
    assert results["accuracy"].value != 1.0


def test_only_the_two_lowest_levels_are_issues(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("accuracy", "answer_completeness", "citations", "context_relevance")
    for level, name in enumerate(asked, start=1):
        grade = Grade(level, Bilingual(f"at {level}", f"{level}"), level / 5)
        monkeypatch.setitem(baseline.SCORERS, name, lambda _, grade=grade: grade)
    found = [one.text for result in judged("regulation_quality", "en", EN["good"]).values() for one in result.findings]
    assert [level for level in range(1, 5) if any(f"at {level}" in text for text in found)] == [1, 2]


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("text", ["good", "bad"])
def test_every_reason_can_be_read_in_the_other_language(language: str, text: str) -> None:
    other, reasons = {"ko": "en", "en": "ko"}[language], set()
    for family in families():
        for result in judged(family, language, str(TEXTS[language][text])).values():
            found = [f.text.partition(": ")[2] for f in result.findings if f.kind in {"issue", "strength"}]
            found += [f.reason for f in result.findings if f.reason and f.kind != "next_step"]
            reasons |= {result.reason, *found} if result.status is Status.SCORED else set()
    told = {reason: translate_reason(reason, other) for reason in reasons if reason}
    assert len(told) > 5
    assert [reason for reason, anew in told.items() if anew == reason] == []
    assert [reason for reason, anew in told.items() if translate_reason(anew, language) != reason] == []


@pytest.mark.parametrize("said", BaselineReason)
def test_every_sentence_is_read_in_both_languages(said: BaselineReason) -> None:
    names = {"percent": 40, "count": 2, "total": 5, "weak": 1, "form": "0.5", "valid": 0.25}
    made = said.format(**names, listed="3.5, 학칙, {leave}", offline="correctness")
    twice = f"{made.en} {BaselineReason.ECHO.value.en}"
    assert translate_reason(made.en, "ko") == made.ko == translate_reason(made.ko, "ko")
    assert translate_reason(made.ko, "en") == made.en == translate_reason(made.en, "en")
    assert translate_reason(twice, "ko") == f"{made.ko} {BaselineReason.ECHO.value.ko}"


def test_what_a_judge_said_in_words_of_its_own_stays() -> None:
    for text in ("", "The answer is right.", "Form 1. And more.", "Refuses as the reference does"):
        assert translate_reason(text, "ko") == text


def test_a_claim_with_citations_is_found_at_its_very_place() -> None:
    text = "Surely. Leave of absence [1] , is limited to three years [2]."
    (*_, found) = judged("claims", "en", text)["claim_support"].findings
    assert (found.text, found.approximate) == ("Leave of absence, is limited to three years.", False)
    assert text[found.start : found.end] == text[len("Surely. ") :]
